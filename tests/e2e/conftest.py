import os
import pathlib
import random
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]
import harness  # noqa: E402



@pytest.fixture(scope="session")
def thermo():
    path = os.environ.get("THERMO", str(ROOT / "build/release/thermo"))
    assert os.access(path, os.X_OK), f"{path} is not built: ./dev build"
    return path


@pytest.fixture
def sim(thermo):
    """Flat keys in memory behind a bucket named 'b'."""
    with harness.Sim(thermo, "--memory") as server:
        server.client().create_bucket(Bucket="tables")
        yield server


@pytest.fixture(scope="session")
def weed():
    with harness.SeaweedFS() as server:
        yield server


@pytest.fixture
def mounts(thermo):
    """mounts(store, *flags, endpoint=...) -> harness.Mount, closed at the end."""
    made = []

    def make(*arguments, **named):
        mount = harness.Mount(thermo, *arguments, **named)
        made.append(mount)
        return mount

    yield make
    for mount in reversed(made):
        mount.close()


def data(size, seed=1):
    return random.Random(seed).randbytes(size)


@pytest.fixture
def payload():
    return data
