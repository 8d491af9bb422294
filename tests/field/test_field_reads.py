"""Section reads: the right bytes, all of them, whatever the size, the order, the number of readers and the state of the cache."""
import hashlib
import os
import pathlib
import random
import subprocess

import harness
import pytest

MIB = 1 << 20


def noise(size, seed):
    return random.Random(seed).randbytes(size)


def test_M21_sizes_around_a_window(store, mount, tmp_path, run):
    """A copy ended at exactly one read-ahead window when the size was a multiple of it and a small tail."""
    bodies = {size: noise(size, size) for size in (20971519, 20971520, 20972496, 8388609, 1179649)}
    for size, body in bodies.items():  # before the mount, which may believe for its TTL that a name does not exist
        store.put(f"f{size}", body)
    where = mount(store)
    for size, body in bodies.items():
        (tmp_path / "want").write_bytes(body)
        run("cp", where / f"f{size}", tmp_path / "copy", check=True)
        run("cmp", tmp_path / "want", tmp_path / "copy", check=True)
        run("cmp", tmp_path / "want", where / f"f{size}", check=True)


def test_M22_parallel_sums_are_equal_each_time(store, mount, run):
    """Checksums of big files, several at a time, differed now and then from one run to the next."""
    want = {}
    for n in range(8):
        body = noise(7 * MIB + 12345 * n, n)
        store.put(f"big{n}", body)
        want[f"big{n}"] = hashlib.md5(body).hexdigest()
    where = mount(store)
    for turn in range(4):
        listed = run("sh", "-c", 'cd "$0" && ls | xargs -P8 -n1 md5sum', where.path, check=True).stdout
        assert {line.split()[1]: line.split()[0] for line in listed.splitlines()} == want, f"turn {turn}"
        harness.drop_page_cache()


def test_M23_partly_cached_files_hold_no_zeros(store, mount):
    """Files that were cached in part, in no order, came back with blocks of zeros, most after a crash of the mount."""
    size = 12 * MIB + 777
    body = noise(size, 5)
    store.put("f", body)
    where = mount(store)
    random_order = random.Random(3)
    for turn in range(3):
        with open(where / "f", "rb", buffering=0) as f:
            for _ in range(60):
                offset, length = random_order.randrange(size), random_order.choice([1, 511, 4096, 70_000, MIB])
                assert os.pread(f.fileno(), length, offset) == body[offset:offset + length], (turn, offset, length)
        reader = subprocess.Popen(["cat", str(where / "f")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        where.kill()
        reader.wait(30)
        where.start()
        harness.drop_page_cache()
    assert (where / "f").read_bytes() == body
    harness.drop_page_cache()
    assert (where / "f").read_bytes() == body


def test_M24_very_large_read_ahead(store, mount, run):
    """With the kernel's read-ahead far above the usual, files ended early."""
    body = noise(24 * MIB + 5, 9)
    store.put("f", body)
    where = mount(store)
    device = os.stat(where.path).st_dev
    knob = pathlib.Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
    try:
        knob.write_text(str(128 * 1024))
    except OSError as error:
        pytest.skip(f"the read-ahead of a mount is set by root: {error}")
    copied = run("cat", where / "f", check=True, text=False).stdout
    assert len(copied) == len(body)
    assert copied == body
    with open(where / "f", "rb", buffering=0) as f:
        assert os.pread(f.fileno(), 4 * MIB, 21 * MIB) == body[21 * MIB:]
        assert os.pread(f.fileno(), 100, len(body)) == b""


def test_M25_a_copied_descriptor_reads_on(store, mount, run, tmp_path):
    """After the first close of a duplicated descriptor (each fork of a shell makes one) the other could not read any more."""
    body = noise(3 * MIB, 11)
    store.put("f", body)
    (tmp_path / "want").write_bytes(body)
    where = mount(store)
    run("bash", "-c", 'exec 3<"$0" 4<&3; exec 3<&-; cat <&4 | cmp - "$1"', where / "f", tmp_path / "want", check=True)
    run("bash", "-c", 'exec 3<"$0"; (head -c 1000 <&3 >/dev/null); tail -c +1001 "$1" | cmp - <(cat <&3)', where / "f", tmp_path / "want", check=True)
