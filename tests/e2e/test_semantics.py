"""Runs every `console` block of docs/semantics.md against a real mount and compares what it prints."""
import pathlib
import re
import subprocess
import sys

import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/semantics.md"

PRELUDE = r"""
cd "$WORK"
put() { "$PYTHON" -c 'import os,sys,urllib.request,urllib.parse as u
q=urllib.request.Request(os.environ["S3"]+"/tables/"+u.quote(os.fsencode(sys.argv[1]),safe=""),data=os.fsencode(sys.argv[2] if len(sys.argv)>2 else ""),method="PUT")
urllib.request.urlopen(q).read()' "$@"; }
del() { "$PYTHON" -c 'import os,sys,urllib.request,urllib.parse as u
urllib.request.urlopen(urllib.request.Request(os.environ["S3"]+"/tables/"+u.quote(os.fsencode(sys.argv[1]),safe=""),method="DELETE")).read()' "$@"; }
ttl() { sleep 1.3; }
"""


def sessions():
    """(section title, number, [(command, expected output)])."""
    found, title, number = [], "", 0
    for part in re.split(r"^(## .*)$", PAGE.read_text(), flags=re.M):
        if part.startswith("## "):
            title, number = part[3:].strip(), 0
            continue
        for block in re.findall(r"^```console\n(.*?)^```", part, flags=re.M | re.S):
            steps = []
            for line in block.splitlines():
                if line.startswith("$ "):
                    steps.append([line[2:], []])
                else:
                    steps[-1][1].append(line)
            number += 1
            found.append(pytest.param(steps, id=f"{title}-{number}"))
    assert len(found) >= 6, "the page has lost its examples"
    return found


@pytest.mark.parametrize("steps", sessions())
def test_example(steps, sim, mounts, tmp_path):
    mount = mounts("s3://tables", "--ttl", "1s", endpoint=sim.url)
    (tmp_path / "M").symlink_to(mount.path)
    # One shell for the whole block: variables and descriptors live on. A mark separates the outputs. find must see a folder, not a link.
    script = PRELUDE + "find() { (cd M && command find . \"${@:2}\" | sed 's,^\\.,M,'); }\n"
    mark = "==mark=="
    for command, _ in steps:
        script += f"{command}\nprintf '%s\\n' '{mark}'\n"
    environment = {"WORK": str(tmp_path), "S3": sim.url, "PYTHON": sys.executable, "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8"}
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120, env=environment)
    outputs = result.stdout.split(mark + "\n")
    assert len(outputs) == len(steps) + 1, result.stdout + result.stderr
    for (command, expected), got in zip(steps, outputs):
        assert got.splitlines() == expected, f"$ {command}\n{got}{result.stderr}"
