import os
import pathlib
import random
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]
import harness  # noqa: E402
from desk import Desk  # noqa: E402



@pytest.fixture(scope="session")
def thermo():
    path = os.environ.get("THERMO", str(ROOT / "build/release/thermo"))
    assert os.access(path, os.X_OK), f"{path} is not built: ./dev build"
    return path


@pytest.fixture
def sim(thermo):
    """Flat keys in memory, with a bucket named 'tables'."""
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


@pytest.fixture
def desk(thermo):
    """A place to call `thermo` as a user does, cleaned up at the end."""
    made = Desk(thermo)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shop(thermo):
    """An S3 server for tests that only read: the bucket 'tables' with two dates of two tables; signatures are checked."""
    with harness.Sim(thermo, "--memory", "--access-key", "test:testtest") as server:
        client = server.client()
        client.create_bucket(Bucket="tables")
        for table in ("quotes", "trades"):
            for date in ("2024-01-01", "2024-01-02"):
                client.put_object(Bucket="tables", Key=f"{table}/{date}/part", Body=data(300_000, f"{table}{date}"))
        client.put_object(Bucket="tables", Key="top", Body=b"hello")
        yield server


def data(size, seed=1):
    return random.Random(seed).randbytes(size)


@pytest.fixture
def payload():
    return data
