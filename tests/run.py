#!/usr/bin/env python3
"""Builds and runs every test lane, then prints one line 'N passed, N failed, N skipped'. Called by ./dev, which has set the machine up.

Lanes: check (source), unit (GoogleTest, release build), e2e and field (pytest on real mounts), asan and tsan (unit tests and one
end-to-end pass), fuzz (clang build with thread-safety analysis, each target for a few seconds).
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LANES = {
    "fast": ["check", "unit", "smoke"],
    "all": ["check", "unit", "e2e", "field", "asan", "tsan", "fuzz"],
}


class Totals:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []
        self.skips = []

    def add(self, passed=0, failed=0, skipped=0, failures=()):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        self.failures += failures


def say(text):
    print(f"\n== {text}", flush=True)


def run(command, **kwargs):
    return subprocess.run([str(c) for c in command], cwd=ROOT, check=False, stdin=subprocess.DEVNULL, **kwargs)


def build(preset, jobs, targets=()):
    """Configures and builds; True on success."""
    folder = ROOT / "build" / preset
    if not (folder / "build.ninja").exists():
        if run(["cmake", "--preset", preset], stdout=subprocess.DEVNULL).returncode != 0:
            return False
    command = ["cmake", "--build", "--preset", preset, "-j", jobs]
    if targets:
        command += ["--target", *targets]
    started = time.monotonic()
    result = run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        print(result.stdout[-12000:])
        return False
    print(f"built {preset} in {time.monotonic() - started:.0f} s", flush=True)
    return True


def step(totals, name, ok):
    totals.add(passed=int(ok), failed=int(not ok), failures=[] if ok else [name])
    return ok


LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+ [A-Z] ")


def what_failed(output, most=8000):
    """The findings of a test program: without what the product logged meanwhile, and from the first one on."""
    lines = [line for line in output.splitlines() if not LOG_LINE.match(line)]
    first = next((n for n, line in enumerate(lines) if re.search(r": Failure$|WARNING: ThreadSanitizer|ERROR: |runtime error", line)), 0)
    return "\n".join(lines[first:])[:most]


def unit_lane(totals, preset, jobs, environment=None):
    if not step(totals, f"build {preset}", build(preset, jobs)):
        return
    env = dict(os.environ, **(environment or {}))
    for binary in sorted((ROOT / "build" / preset).glob("test_*")):
        if binary.is_dir() or not os.access(binary, os.X_OK):
            continue
        with tempfile.NamedTemporaryFile(suffix=".json") as report:
            started = time.monotonic()
            try:
                result = run([binary, f"--gtest_output=json:{report.name}", "--gtest_brief=1"], env=env, timeout=600,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
                code, output = result.returncode, result.stdout
            except subprocess.TimeoutExpired as error:
                code, output = -1, f"{error}\n{(error.stdout or b'')[-4000:]}"
            try:
                data = json.load(open(report.name))
            except ValueError:
                data = None
            if data is None:  # the process died before it wrote its report
                totals.add(failed=1, failures=[f"{preset}/{binary.name} (exit {code})"])
                print(output[-8000:])
                continue
            failures, skipped = [], 0
            for suite in data["testsuites"]:
                for case in suite["testsuite"]:
                    if case.get("failures"):
                        failures.append(f"{preset}/{binary.name}: {suite['name']}.{case['name']}")
                    elif case.get("result") == "SKIPPED":
                        skipped += 1
            failed = len(failures)
            if code != 0 and failed == 0:  # a sanitizer report at exit, for example
                failures, failed = [f"{preset}/{binary.name} (exit {code})"], 1
            totals.add(passed=data["tests"] - skipped - len([f for f in failures if ": " in f]), failed=failed, skipped=skipped,
                       failures=failures)
            state = "ok" if not failed else "FAILED"
            print(f"{preset:8} {binary.name:24} {data['tests']:4} tests, {skipped} skipped, {time.monotonic() - started:6.1f} s  {state}",
                  flush=True)
            if failed:
                print(what_failed(output))


def pytest_lane(totals, name, thermo, arguments, environment=None):
    if not thermo.exists():
        totals.add(failed=1, failures=[f"{name}: {thermo} was not built"])
        return
    env = dict(os.environ, THERMO=str(thermo), **(environment or {}))
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        code = run([sys.executable, "-m", "pytest", "-q", "-rs", "--tb=short", "--durations=8", f"--junitxml={report.name}",
                    "-p", "no:cacheprovider", *arguments], env=env).returncode
        try:
            suites = list(ElementTree.parse(report.name).getroot().iter("testsuite"))
        except ElementTree.ParseError:
            totals.add(failed=1, failures=[f"{name}: pytest ended with {code} and no report"])
            return
        failures = [f"{name}: {case.get('classname')}::{case.get('name')}" for suite in suites for case in suite.iter("testcase")
                    if case.find("failure") is not None or case.find("error") is not None]
        tests = sum(int(s.get("tests", 0)) for s in suites)
        skipped = sum(int(s.get("skipped", 0)) for s in suites)
        if code not in (0, 1) and not failures:
            failures = [f"{name}: pytest ended with {code}"]
        totals.add(passed=max(0, tests - skipped - len(failures)), failed=len(failures), skipped=skipped, failures=failures)


def fuzz(target, seconds):
    """Runs one target from its seeds; True when it found nothing."""
    with tempfile.TemporaryDirectory() as work:
        command = [target, f"-max_total_time={seconds}", "-rss_limit_mb=2048", "-timeout=20", "-print_final_stats=1",
                   f"-artifact_prefix={work}/", work, ROOT / "tests/fuzz/corpus" / target.name]
        try:
            result = run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds + 120)
            ok, output = result.returncode == 0, result.stdout
        except subprocess.TimeoutExpired as error:
            ok, output = False, f"{error}\n{(error.stdout or b'').decode(errors='replace')}"
        runs = [line for line in output.splitlines() if "number_of_executed_units" in line]
        print(f"fuzz     {target.name:24} {runs[0].split()[-1] if runs else '?':>10} runs  {'ok' if ok else 'FAILED'}", flush=True)
        if not ok:
            print(output[-6000:])
            for artifact in pathlib.Path(work).glob("*-*"):
                if artifact.name.startswith(("crash", "timeout", "oom", "leak")):
                    keep = ROOT / "build" / f"{target.name}-{artifact.name}"
                    shutil.copy(artifact, keep)
                    print(f"input kept: {keep}")
    return ok


def fuzz_lane(totals, jobs, seconds):
    if not step(totals, "build clang", build("clang", jobs)):
        return
    targets = sorted(p for p in (ROOT / "build/clang/tests/fuzz").glob("fuzz_*") if os.access(p, os.X_OK) and p.is_file())
    if not targets:
        totals.add(failed=1, failures=["fuzz: no targets were built"])
    with concurrent.futures.ThreadPoolExecutor(int(jobs)) as pool:
        for target, ok in zip(targets, pool.map(lambda target: fuzz(target, seconds), targets)):
            step(totals, f"fuzz {target.name}", ok)


ASAN = {"ASAN_OPTIONS": "detect_stack_use_after_return=1:abort_on_error=0:exitcode=99", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
TSAN = {"TSAN_OPTIONS": "halt_on_error=0:exitcode=99:second_deadlock_stack=1:suppressions=" + str(ROOT / "tests/tsan.supp")}


def lane(name, totals, options):
    say(name)
    started = time.monotonic()
    release = ROOT / "build/release/thermo"
    if name == "check":
        step(totals, "check", run([sys.executable, "tests/check_source.py"]).returncode == 0)
    elif name == "unit":
        unit_lane(totals, "release", options.jobs)
    elif name == "smoke":
        pytest_lane(totals, "smoke", release, ["tests/e2e", "-m", "smoke"])
    elif name == "e2e":
        pytest_lane(totals, "e2e", release, ["tests/e2e"])
    elif name == "field":
        pytest_lane(totals, "field", release, ["tests/field"])
    elif name in ("asan", "tsan"):
        # What a sanitizer says of a daemon, which nobody's exit code shows, goes to a file of its own.
        with tempfile.TemporaryDirectory(prefix=f"thermo_{name}_") as reports:
            environment = dict(ASAN if name == "asan" else TSAN)
            unit_lane(totals, name, options.jobs, environment)
            for variable in [key for key in environment if key.endswith("SAN_OPTIONS")]:
                environment[variable] += f":log_path={reports}/{name}"
            pytest_lane(totals, f"{name} e2e", ROOT / "build" / name / "thermo", ["tests/e2e", "-m", "smoke"],
                        dict(environment, THERMO_SLOW="8"))
            for report in sorted(pathlib.Path(reports).iterdir()):
                step(totals, f"{name} e2e: report of process {report.suffix[1:]}", False)
                print(report.read_text(errors="replace")[:6000])
    elif name == "fuzz":
        fuzz_lane(totals, options.jobs, options.fuzz_seconds)
    print(f"-- {name}: {time.monotonic() - started:.0f} s", flush=True)


def main():
    # A shell that starts this in the background lets it ignore Ctrl-C, and every program under test would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=[*LANES, *sorted({x for lanes in LANES.values() for x in lanes})])
    parser.add_argument("--jobs", default=str(os.cpu_count()))
    parser.add_argument("--fuzz-seconds", type=int, default=5)
    options = parser.parse_args()
    totals = Totals()
    for name in LANES.get(options.what, [options.what]):
        lane(name, totals, options)
    say("result")
    for failure in totals.failures:
        print(f"FAILED {failure}")
    print(f"{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped")
    return 1 if totals.failed or totals.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
