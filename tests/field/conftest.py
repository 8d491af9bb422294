"""Field faults: what other S3 mounts were seen to do wrong, as tests of any mount on any endpoint (README.md).

Fixtures: `store` is a new bucket, `mount(store, ...)` mounts it, `gate(store, rule)` stands before it, `run` starts a program with a time limit.
"""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/field")]
import field_mount  # noqa: E402
import field_store  # noqa: E402
import harness  # noqa: E402


def pytest_collection_modifyitems(items):
    """A mount that hangs fails its test, not the run."""
    for item in items:
        if item.path.parent.name == "field" and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(60 * harness.SLOW))


@pytest.fixture(scope="session")
def our_program():
    path = os.environ.get("THERMO", str(ROOT / "build/release/thermo"))
    assert os.access(path, os.X_OK), f"{path} is not built: ./dev build"
    return os.path.abspath(path)


@pytest.fixture(scope="session")
def sim(request):
    """The default endpoint: truly flat keys in memory. None where FIELD_ENDPOINT names another one."""
    if os.environ.get("FIELD_ENDPOINT"):
        yield None
        return
    with harness.Sim(request.getfixturevalue("our_program"), "--memory") as server:
        yield server


@pytest.fixture
def store(sim):
    bucket = field_store.Store(sim.url if sim else os.environ["FIELD_ENDPOINT"], sim)
    yield bucket
    bucket.close()


@pytest.fixture
def gate():
    made = []

    def make(store, rule):
        made.append(field_store.Gate(store, rule))
        return made[-1]

    yield make
    for server in made:
        server.close()


@pytest.fixture
def mount(request):
    """mount(store, url=, ttl=, cache=, env=) -> OurMount or OtherMount. Flags and `prefix` of ours: see `ours`."""
    made = []

    def make(store, *flags, **named):
        if field_mount.COMMAND:
            made.append(field_mount.OtherMount(store, **named))
        else:
            made.append(field_mount.OurMount(request.getfixturevalue("our_program"), store, *flags, **named))
        return made[-1]

    yield make
    for one in reversed(made):
        one.close()


@pytest.fixture
def ours():
    """A test that needs what only our own mount has."""
    if field_mount.COMMAND:
        pytest.skip("only for our own mount: it uses an option or a promise of it")


@pytest.fixture
def run():
    """run(word, ..., seconds=30) -> CompletedProcess with text; a program that hangs on a mount fails the test and is killed."""

    def call(*words, seconds=30, check=False, text=True):
        result = subprocess.run([os.fspath(w) if not isinstance(w, (int, float)) else str(w) for w in words], capture_output=True, text=text,
                                timeout=seconds * harness.SLOW, stdin=subprocess.DEVNULL, check=False)
        if check:
            assert result.returncode == 0, f"{words}: exit {result.returncode}\n{result.stdout[-2000:]}{result.stderr[-2000:]}"
        return result

    return call


@pytest.fixture
def python(run):
    """python(script, argument, ...) runs a script in a process of its own; it ends with an errno when it met an OSError."""

    def call(script, *arguments, **named):
        lines = "\n".join("  " + line for line in script.strip().splitlines())
        return run(sys.executable, "-I", "-S", "-c", f"import os, sys\ntry:\n{lines}\nexcept OSError as e:\n  sys.exit(e.errno)", *arguments, **named)

    return call


@pytest.fixture
def read(python):
    """read(path) -> (0, bytes) or (errno, b"")."""

    def call(path, seconds=30):
        result = python("f = open(sys.argv[1], 'rb', buffering=0)\nwhile b := f.read(1 << 20): sys.stdout.buffer.write(b)", path, seconds=seconds,
                        text=False)
        return result.returncode, result.stdout if result.returncode == 0 else b""

    return call
