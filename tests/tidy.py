#!/usr/bin/env python3
"""clang-tidy over the sources (checks: .clang-tidy), for the desk: `./dev tidy` takes what changed since the last commit, `./dev tidy all` everything,
`./dev tidy FILE...` what is named. A source takes seconds, all of them longer than the whole of CI has time for.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FINDING = re.compile(r"^(/\S+:\d+:\d+): (?:error|warning): (.*) \[(\S+?)(?:,-warnings-as-errors)?\]$")


def changed():
    """Sources that differ from the last commit, and those that include a header that does."""
    listed = subprocess.run(["git", "status", "--porcelain", "--", "src", "tests"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = {line[3:].split(" -> ")[-1] for line in listed.splitlines()}
    headers = {name.removeprefix("src/").removeprefix("tests/") for name in names if name.endswith(".h")}
    return {path for path in sources() if str(path.relative_to(ROOT)) in names or (
        headers and any(f'#include "{header}"' in path.read_text() for header in headers))}


def sources():
    return set((ROOT / "src").rglob("*.cc")) | set((ROOT / "tests/fuzz").rglob("*.cc"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", help="'all', or sources; none: those that changed")
    parser.add_argument("--build", default="build/clang", help="a build folder of the clang preset")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    build = ROOT / options.build
    known = {pathlib.Path(unit["file"]).resolve() for unit in json.loads((build / "compile_commands.json").read_text())}
    wanted = sources() if options.files == ["all"] else {(ROOT / name).resolve() for name in options.files} or changed()
    wanted = sorted(wanted & known)

    def check(path):
        return subprocess.run(["clang-tidy-19", "-p", str(build), "--quiet", str(path)], cwd=ROOT, capture_output=True, text=True)

    findings = set()  # one in a header is told by each source that includes it
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for path, result in zip(wanted, pool.map(check, wanted)):
            told = [match.groups() for match in map(FINDING.match, result.stdout.splitlines()) if match]
            if result.returncode != 0 and not told:
                told = [(str(path), (result.stdout + result.stderr)[-2000:], "clang-tidy failed")]
            for place, text, name in told:
                finding = f"{place.removeprefix(str(ROOT) + '/')}: {text} [{name}]"
                if finding not in findings:
                    print(finding, flush=True)
                findings.add(finding)
    print(f"tidy: {len(wanted)} sources, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
