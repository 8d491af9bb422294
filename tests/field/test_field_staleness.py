"""Section staleness: somebody else changes the bucket. After the time that names are believed the mount shows what is there, whole."""
import errno
import os
import subprocess
import time

import field_mount
import harness
import pytest

MIB = 1 << 20
GONE = (errno.ESTALE, errno.EIO)  # how a reader may learn that its version was replaced; our own mount says ESTALE


def gone(where):
    return (errno.ESTALE,) if where.ours else GONE


def test_M13_same_size_replacement(store, mount, read):
    """The replaced object showed its new time and the old bytes, out of the kernel's page cache, until the next mount."""
    store.put("d/f", b"A" * 300_000)
    where = mount(store)
    assert read(where / "d/f") == (0, b"A" * 300_000)
    with open(where / "d/f", "rb"):  # also with a handle of the old version still open
        store.put("d/f", b"B" * 300_000)
        where.expire()
        assert read(where / "d/f") == (0, b"B" * 300_000)
    assert read(where / "d/f") == (0, b"B" * 300_000)


@pytest.mark.parametrize("size", [5_000_000, 1000, 0], ids=["grown", "shrunk", "emptied"])
def test_M14_another_length(store, mount, read, python, size):
    """A grown object was read with its old length; a shrunk one ended in zeros."""
    store.put("f", b"A" * 200_000)
    where = mount(store)
    assert read(where / "f") == (0, b"A" * 200_000)
    store.put("f", b"B" * size)
    where.expire()
    assert read(where / "f") == (0, b"B" * size)
    counted = python("print(os.stat(sys.argv[1]).st_size, os.lseek(os.open(sys.argv[1], os.O_RDONLY), 0, os.SEEK_END))", where / "f")
    assert counted.stdout.split() == [str(size)] * 2


def test_M15_replaced_while_it_is_read(store, mount, read):
    """Parallel ranges of one read fell on both sides of a replacement: the file that came out had never existed.

    20 objects, each replaced at another point of its first read, while what comes next is on its way. The handle gives the old bytes to the end or
    an error, never a mixture; the next open has one version, whole.
    """
    old, new = b"a" * (9 * MIB), b"b" * (9 * MIB)
    store.put("old", old)
    store.put("new", new)
    for turn in range(20):
        store.copy("old", f"f{turn}")
    where = mount(store, ttl=field_mount.LONG_TTL)
    store.pace(first_byte_ms=5, per_connection="120MB/s")
    outcomes = []
    for turn in range(20):
        fd = os.open(where / f"f{turn}", os.O_RDONLY)
        try:
            got = b""
            while len(got) < turn * turn * 24_000:  # the first ones early: until the 20th the whole file has been asked for
                got += os.read(fd, 128 * 1024)
            store.copy("new", f"f{turn}")
            while piece := os.read(fd, 128 * 1024):
                got += piece
            outcomes.append(0)
            assert got in ((old, new) if turn == 0 else (old,)), "a mixture of two versions"
        except OSError as error:
            assert error.errno in gone(where), error
            assert got == old[:len(got)]
            outcomes.append(error.errno)
        finally:
            os.close(fd)
        code, got = read(where / f"f{turn}")
        if code:
            assert code in gone(where), errno.errorcode.get(code, code)
            code, got = read(where / f"f{turn}")
        assert code == 0 and got in (old, new), "the next open has one version, whole"
    print("replaced while read:", [errno.errorcode.get(code, "whole") for code in outcomes])


def test_M16_replaced_with_a_long_ttl(store, mount, read):
    """A name that was believed for a minute but whose object was replaced: each open was an error until the minute was over."""
    body = os.urandom(6 * MIB)
    for key in ("read", "looked-at", "half"):
        store.put(key, b"old" * 1000 if key != "half" else body)
    where = mount(store, ttl=field_mount.LONG_TTL)
    assert read(where / "read") == (0, b"old" * 1000)
    os.stat(where / "looked-at")
    with open(where / "half", "rb", buffering=0) as f:
        assert f.read(4096) == body[:4096]
    for key in ("read", "looked-at", "half"):
        store.put(key, b"newer" * 1000)
        code, got = read(where / key)
        if code == 0:
            assert got in (b"old" * 1000, b"newer" * 1000, body)
        else:
            assert code in gone(where), errno.errorcode.get(code, code)
            assert read(where / key) == (0, b"newer" * 1000), f"{key}: the second open succeeds"
        assert read(where / key)[0] == 0


def test_M16_deleted_with_a_long_ttl(store, mount, read):
    """The same for a deleted object: one reader may be told late, then the name is gone."""
    store.put("d/f", b"x" * 100_000)
    store.put("d/g")
    where = mount(store, ttl=field_mount.LONG_TTL)
    os.stat(where / "d/f")
    store.delete("d/f")
    code, _ = read(where / "d/f")
    assert code in (*gone(where), errno.ENOENT), errno.errorcode.get(code, code)
    assert read(where / "d/f")[0] == errno.ENOENT
    assert os.listdir(where / "d") == ["g"]


def test_M17_many_versions_one_after_the_other(store, mount, read):
    """A full cache went on with version 1 for ever, each time the name was asked for again just after it had expired."""
    where = mount(store)
    wrong = []
    for number in range(1, 9):
        store.put("d/f", b"version %06d" % number)
        where.expire()
        if read(where / "d/f") != (0, b"version %06d" % number):
            wrong.append(number)
    assert wrong == []


def test_M18_new_names_appear(store, mount):
    """Listings came from the kernel's own copy or a folder that was never asked again; worst in a folder that had been empty."""
    store.put("d/a")
    store.put("empty/", b"")
    where = mount(store)
    for _ in range(2):
        assert os.listdir(where / "d") == ["a"]
        assert os.listdir(where / "empty") == []
        assert not os.path.exists(where / "d/new")
        assert not os.path.exists(where / "later")
    for key in ("d/new", "empty/first", "later/x"):
        store.put(key)
    where.expire()
    assert sorted(os.listdir(where / "d")) == ["a", "new"]
    assert os.listdir(where / "empty") == ["first"]
    assert os.listdir(where / "later") == ["x"]
    assert sorted(os.listdir(where.path)) == ["d", "empty", "later"]


def test_M18_deleted_names_disappear(store, mount):
    """The other direction, with an open folder handle in between."""
    for key in ("d/a", "d/b", "d/e/x"):
        store.put(key)
    where = mount(store)
    assert sorted(os.listdir(where / "d")) == ["a", "b", "e"]
    assert os.listdir(where / "d/e") == ["x"]
    handle = os.open(where / "d", os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert sorted(os.listdir(handle)) == ["a", "b", "e"]
        store.delete("d/b")
        store.delete("d/e/x")
        where.expire()
        assert os.listdir(where / "d") == ["a"]
        assert os.listdir(handle) == ["a"]
        assert not os.path.exists(where / "d/b")
        assert not os.path.exists(where / "d/e/x")
    finally:
        os.close(handle)


@pytest.mark.parametrize("cache", ["apart", "shared"])
def test_M19_two_mounts_agree(store, mount, read, request, cache):
    """What one mount had already shown stayed invisible on a second one for longer than its TTL."""
    if cache == "shared":
        request.getfixturevalue("ours")
    store.put("d/f", b"one")
    first = mount(store)
    second = mount(store, cache=first.cache if cache == "shared" else None)
    for where in (first, second):
        assert read(where / "d/f") == (0, b"one")
        assert not os.path.exists(where / "d/new")
    if first.read_only:
        store.put("d/f", b"two")
        store.put("d/new")
        first.expire()
    else:
        with open(first / "d/f", "w") as f:
            f.write("two")
            f.flush()
            os.fsync(f.fileno())
        open(first / "d/new", "w").close()
        second.expire()
    for where in (first, second):
        assert read(where / "d/f") == (0, b"two")
        assert sorted(os.listdir(where / "d")) == ["f", "new"]


def test_M20_same_size_with_a_cache_on_disk(store, mount, read):
    """The cache on disk knew an object by name, size and time only: an update of the same size was never seen, not even by a new mount."""
    old, new, newest = (bytes([c]) * (2 * MIB) for c in b"123")
    store.put("d/f", old)
    where = mount(store)
    assert read(where / "d/f") == (0, old)
    store.put("d/f", new)
    where.expire()
    harness.drop_page_cache()
    assert read(where / "d/f") == (0, new)
    where.unmount()
    store.put("d/f", newest)
    time.sleep(where.ttl + 0.1)
    where.start()
    assert read(where / "d/f") == (0, newest)


def test_tail_f_of_a_replaced_file_ends(store, mount):
    """A program that keeps a file open over its replacement must not hang or see bytes of both versions."""
    store.put("log", b"a\n" * 1000)
    where = mount(store)
    with subprocess.Popen(["tail", "-n", "2000", "--retry", "-s", "0.2", "-f", str(where / "log")], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as tail:
        try:
            time.sleep(0.3)
            store.put("log", b"b\n" * 1000)
            where.expire()
            time.sleep(0.5)
        finally:
            tail.terminate()
            got = tail.communicate(timeout=20)[0]
    assert set(got) <= set(b"ab\n") and got.startswith(b"a\n" * 1000)
