#!/usr/bin/env python3
"""Checks of the source that no compiler makes: includes point down only, coroutines stay out, formatting, file sizes.

Exit code 0 when clean; one line per finding otherwise.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

# Ground floor first; a module may include itself and what its line names.
ALLOWED = {
    "base": set(),
    "io": {"base"},
    "net": {"base"},
    "store": {"base"},
    "store/memory": {"store", "base"},
    "store/file": {"store", "io", "base"},
    "store/s3": {"store", "net", "base"},
    "store/layers": {"store", "base"},
    "s3sim": {"net", "base", "store", "store/memory", "store/file"},
    "catalog": {"store", "io", "base"},
    "cache": {"store", "io", "base"},
    "read": {"cache", "store", "io", "base"},
    "vfs": {"read", "catalog", "cache", "store", "io", "base"},
    "front/admin": {"vfs", "net", "base"},
    "front/fuse": {"vfs", "read", "catalog", "cache", "store", "base"},
    "app": None,  # the only place that names concrete classes
}
# A heavy header belongs in .cc files only.
# The one small header around a heavy one that a module may have, for its own .cc files: its name begins so.
WRAPPERS = {"curl/": "src/net/curl_"}
HEAVY = ("boost/", "rocksdb/", "toml++/", "nlohmann/json.hpp", "CLI/", "spdlog/", "pugixml", "curl/")
MAX_LINES = 700
COROUTINE = re.compile(r"\bco_(?:await|yield|return)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)
MARKS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def module_of(path: str) -> str:
    """'store/s3/x.h' -> 'store/s3'."""
    return str(pathlib.PurePosixPath(path).parent)


def sources(*folders):
    for folder in folders:
        for ending in ("*.h", "*.cc"):
            yield from sorted((ROOT / folder).rglob(ending))


def main() -> int:
    findings = []
    for path in sources("src", "tests", "bench"):
        name = path.relative_to(ROOT)
        text = path.read_text()
        lines = text.count("\n")
        if lines > MAX_LINES:
            findings.append(f"{name}: {lines} lines; split it along a seam (limit {MAX_LINES})")
        for number, line in enumerate(text.splitlines(), 1):
            if COROUTINE.search(line):
                findings.append(f"{name}:{number}: coroutines are not allowed (GCC 12 destroys temporaries twice)")
            if MARKS.search(line):
                findings.append(f"{name}:{number}: unfinished mark; finish it or write down why it stays out")
        if SRC not in path.parents:
            continue
        inside = path.relative_to(SRC).as_posix()
        module = module_of(inside)
        if module not in ALLOWED:
            findings.append(f"{name}: folder '{module}' is not a module of the house; add it to tests/check_source.py and CMakeLists.txt")
            continue
        for kind, target in INCLUDE.findall(text):
            if kind == "<" or target.startswith(HEAVY):
                wrapped = any(target.startswith(lib) and str(name).startswith(home) for lib, home in WRAPPERS.items())
                if path.suffix == ".h" and target.startswith(HEAVY) and not target.endswith("json_fwd.hpp") and not wrapped:
                    findings.append(f"{name}: heavy header <{target}> in a header; include it in one .cc behind a small header")
                continue
            other = module_of(target)
            allowed = ALLOWED[module]
            if allowed is not None and other != module and other not in allowed:
                findings.append(f"{name}: includes {target}: '{module}' may not use '{other}'")
    clang_format = "clang-format-19"
    files = [str(p) for p in sources("src", "tests", "bench")]
    if files:
        try:
            result = subprocess.run([clang_format, "--dry-run", "-Werror", *files], capture_output=True, text=True, cwd=ROOT)
        except FileNotFoundError:
            findings.append("clang-format-19 is missing: ./dev setup")
        else:
            if result.returncode != 0:
                bad = sorted({line.split(":")[0] for line in result.stderr.splitlines() if "error:" in line})
                findings += [f"{pathlib.Path(b).relative_to(ROOT) if pathlib.Path(b).is_absolute() else b}: not formatted; ./dev fmt" for b in bad]
    for finding in findings:
        print(finding)
    print(f"check: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
