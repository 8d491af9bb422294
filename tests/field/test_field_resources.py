"""Section resources and failure: memory, cache disks, keys and crashes. A mount that lasts for weeks is bounded and recovers by itself."""
import errno
import os
import random
import subprocess
import threading
import time

import field_mount
import field_store
import harness
import pytest

MIB = 1 << 20
# 150 MB of its own plus the default of --memory; another mount may be given another bound.
MEMORY_LIMIT_MB = int(os.environ.get("FIELD_MEMORY_LIMIT_MB", "406"))


def peak_memory(where):
    """The most that the mount's processes have held, in bytes."""
    total = 0
    for pid in where.pids():
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("VmHWM:"):
                total += int(line.split()[1]) * 1024
    assert total > 0, "no process of the mount was found"
    return total


def test_M49_memory_is_bounded(store, mount, run):
    """Many open files with random reads, then a listing of very many names: memory grew until the machine killed the mount."""
    body = random.Random(1).randbytes(8 * MIB)
    for n in range(16):
        store.put(f"big{n}", body)
    store.bulk("wide/name-", 200_000 if store.sim else 2000)
    where = mount(store, ttl=field_mount.LONG_TTL)
    handles = [os.open(where / f"big{n % 16}", os.O_RDONLY) for n in range(200)]
    wrong = []

    def read_at_random(seed):
        order = random.Random(seed)
        for _ in range(500):
            handle, offset = order.choice(handles), order.randrange(len(body))
            if os.pread(handle, 4096, offset) != body[offset:offset + 4096]:
                wrong.append(offset)

    threads = [threading.Thread(target=read_at_random, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for handle in handles:
        os.close(handle)
    assert wrong == []
    after_reads = peak_memory(where)
    listed = run("sh", "-c", 'ls -fU "$0" | wc -l', where / "wide", seconds=60, check=True)
    assert int(listed.stdout) in ((200_002, 200_000) if store.sim else (2002, 2000))
    after_listing = peak_memory(where)
    print(f"peak memory: {after_reads / 1e6:.0f} MB after reads, {after_listing / 1e6:.0f} MB after the listing")
    assert after_listing < MEMORY_LIMIT_MB * 1_000_000


def credentials_file(path, **profiles):
    text = "".join(f"[{name}]\naws_access_key_id = {key}\naws_secret_access_key = {field_store.SECRET}\n\n" for name, key in profiles.items())
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(path)


NO_KEYS = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_SESSION_TOKEN": None, "AWS_PROFILE": None, "AWS_CONFIG_FILE": "/dev/null",
           "AWS_EC2_METADATA_DISABLED": "true"}


def only_for(accepted):
    """The endpoint takes the access keys of the list `accepted`, which may change."""
    return lambda request: None if request.access_key in accepted else "InvalidAccessKeyId"


@pytest.mark.parametrize("refusal", ["InvalidAccessKeyId", "ExpiredToken"])
def test_M50_rotated_keys_are_picked_up(store, mount, gate, read, tmp_path, refusal):
    """Keys were exchanged in the credentials file and the old ones stopped working: the mount failed until somebody mounted it again."""
    store.needs_sim("the endpoint must take any access key")
    for n in range(3):
        store.put(f"d/f{n}", b"x" * 100_000)
    accepted = ["FIRSTKEY"]
    front = gate(store, lambda request: None if request.access_key in accepted else refusal)
    file = tmp_path / ".aws/credentials"
    credentials_file(file, default="FIRSTKEY")
    where = mount(store, url=front.url, env={**NO_KEYS, "HOME": str(tmp_path), "AWS_SHARED_CREDENTIALS_FILE": str(file)})
    assert read(where / "d/f0") == (0, b"x" * 100_000)
    credentials_file(file, default="SECONDKEY")
    accepted[:] = ["SECONDKEY"]
    where.expire()
    harness.wait_for(lambda: read(where / "d/f1") == (0, b"x" * 100_000), 20, "the new keys to be used")
    assert read(where / "d/f2") == (0, b"x" * 100_000)
    assert sorted(os.listdir(where / "d")) == ["f0", "f1", "f2"]


def test_M50_keys_that_come_late_are_picked_up(store, mount, gate, read, tmp_path):
    """The other order: the endpoint changes first. Meanwhile reads say EACCES, never "no such file"; then they work without a new mount."""
    store.needs_sim("the endpoint must take any access key")
    store.put("d/f0", b"zero")
    store.put("d/f1", b"one")
    accepted = ["FIRSTKEY"]
    front = gate(store, only_for(accepted))
    file = tmp_path / ".aws/credentials"
    credentials_file(file, default="FIRSTKEY")
    where = mount(store, url=front.url, env={**NO_KEYS, "HOME": str(tmp_path), "AWS_SHARED_CREDENTIALS_FILE": str(file)})
    assert read(where / "d/f0") == (0, b"zero")
    accepted[:] = ["SECONDKEY"]
    where.expire()
    assert read(where / "d/f1")[0] in (errno.EACCES, errno.EPERM)
    credentials_file(file, default="SECONDKEY")
    harness.wait_for(lambda: read(where / "d/f1") == (0, b"one"), 20, "the new keys to be used")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=False)


def test_M51_cache_disk_is_full(store, mount, read, small_disk):
    """The cache's disk filled up: operations failed, nothing was cleaned, and the log grew until the next disk was full too."""
    body = random.Random(2).randbytes(8 * MIB)
    for n in range(24):
        store.put(f"f{n}", body[n:])
    where = mount(store, cache=small_disk / "cache")
    try:
        for n in range(24):
            assert read(where / f"f{n}") == (0, body[n:]), n
        (small_disk / "hog").write_bytes(b"")
        with open(small_disk / "hog", "ab", buffering=0) as hog:  # somebody else takes what is left
            try:
                while hog.write(b"x" * MIB):
                    pass
            except OSError as error:
                assert error.errno == errno.ENOSPC
        for n in range(0, 24, 3):
            assert read(where / f"f{n}") == (0, body[n:]), n
        (small_disk / "hog").unlink()
        for n in range(6):
            assert read(where / f"f{n}") == (0, body[n:]), n
        assert where.log_lines() < 300
    finally:
        where.close()


def test_M52_killed_while_the_cache_is_written(store, mount, read):
    """After a kill -9 with the cache half written, files could not be opened any more, or ended in errors about positions."""
    body = random.Random(4).randbytes(20 * MIB)
    store.put("big", body)
    store.put("d/other", b"x")
    where = mount(store)
    if not where.pids():
        pytest.skip("no process of the mount was found")
    for delay in (0.02, 0.1, 0.25):
        reader = subprocess.Popen(["cat", str(where / "big")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        where.kill()
        reader.wait(30)
        where.start()
        assert read(where / "d/other") == (0, b"x")
        with open(where / "big", "rb") as f:
            f.seek(15 * MIB)
            assert f.read(4096) == body[15 * MIB:15 * MIB + 4096]
    assert read(where / "big") == (0, body)


def test_M53_named_profile_beats_stale_default(store, mount, gate, read, tmp_path):
    """Old keys in root's home won over the profile that the mount was told to use."""
    store.needs_sim("the endpoint must take any access key")
    store.put("d/f", b"mine")
    front = gate(store, only_for(["GOODKEY"]))
    home = tmp_path / "home"
    home.mkdir()
    credentials_file(home / ".aws/credentials", default="STALEKEY", tables="GOODKEY")
    where = mount(store, url=front.url, env={**NO_KEYS, "HOME": str(home), "AWS_PROFILE": "tables"})
    assert read(where / "d/f") == (0, b"mine")
    assert front.refused == 0, "the stale keys were never tried"


def test_M53_fstab_line_with_a_profile(store, ours, our_program, gate, read, run, tmp_path):
    """The same from a line of fstab at boot: no HOME, no PATH of a user, only `profile=` among the options."""
    if os.geteuid() != 0:
        pytest.skip("mount(8) mounts for root only")
    store.needs_sim("the endpoint must take any access key")
    store.put("d/f", b"mine")
    front = gate(store, only_for(["GOODKEY"]))
    file = tmp_path / "credentials"
    credentials_file(file, default="STALEKEY", tables="GOODKEY")
    point = tmp_path / "mnt"
    point.mkdir()
    options = f"ro,profile=tables,endpoint={front.url},region={store.region},cache={tmp_path / 'cache'},cache-size=1GiB,ttl=1s"
    table = tmp_path / "fstab"
    table.write_text(f"{our_program}#s3://{store.bucket} {point} fuse {options} 0 0\n")
    environment = ["env", "-i", f"PATH=/usr/sbin:/usr/bin:/sbin:/bin", f"AWS_SHARED_CREDENTIALS_FILE={file}", "AWS_CONFIG_FILE=/dev/null"]
    try:
        mounted = run(*environment, "mount", "--fstab", table, point)
        assert mounted.returncode == 0, mounted.stderr
        assert read(point / "d/f") == (0, b"mine")
        run("umount", point, check=True)
    finally:
        harness.force_unmount(point)
