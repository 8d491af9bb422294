"""Sizes that nobody expects: a sparse file larger than any object is refused, and the mount goes on."""
import errno
import os
import pathlib
import tempfile

import pytest


@pytest.fixture
def exabytes():
    """A folder of a file system that takes a file of 4 EiB."""
    with tempfile.TemporaryDirectory(prefix="thermo_huge_", dir="/dev/shm") as folder:
        huge = pathlib.Path(folder) / "huge"
        huge.touch()
        os.truncate(huge, 1 << 62)
        (pathlib.Path(folder) / "small").write_bytes(b"small")
        yield folder


def test_a_file_of_exabytes_is_refused_and_the_others_are_served(exabytes, mounts):
    mount = mounts(f"file://{exabytes}")
    assert (mount / "huge").stat().st_size == 1 << 62
    with pytest.raises(OSError) as refused:
        (mount / "huge").open("rb").read(1)
    assert refused.value.errno == errno.EOPNOTSUPP
    assert (mount / "small").read_bytes() == b"small"
    result = mount.run("load", mount.path, check=False)
    assert result.returncode != 0 and "huge" in result.stdout + result.stderr and "1 PiB" in result.stdout + result.stderr
    assert mount.run("stat", mount / "huge").returncode == 0
