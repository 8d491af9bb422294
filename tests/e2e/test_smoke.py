"""The spine end to end: a bucket becomes a folder, read cold, warm and after a restart, by the bytes."""
import hashlib
import os
import subprocess

import harness
import pytest

pytestmark = pytest.mark.smoke

SIZES = [0, 1, 4095, 4096, 4097, 65536, 65537, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (8 << 20) + 3, 20 << 20]


@pytest.fixture
def bucket(sim, payload):
    client = sim.client()
    files = {f"t/size-{size}": payload(size, size + 1) for size in SIZES}
    files |= {"t/dt=2024-01-01/part 0.parquet": b"one", "t/é+%/x": b"two", "top": b"three"}
    for key, body in files.items():
        client.put_object(Bucket="tables", Key=key, Body=body)
    return files


def test_reads_cold_warm_and_after_a_restart(sim, bucket, mounts):
    mount = mounts("s3://tables", endpoint=sim.url)
    for round_name in ("cold", "warm", "restarted"):
        for key, body in bucket.items():
            assert (mount / key).read_bytes() == body, f"{key} {round_name}"
        if round_name == "cold":
            sim.reset()
        if round_name == "warm":
            assert sim.requests("GET") == 0, "a second reader of the same bytes makes no request"
            mount.remount()
            sim.reset()
    assert sim.requests("GET") == 0, "everything is kept across a restart"
    assert mount.served("warm") > 0


def test_lists_what_is_there(sim, bucket, mounts):
    mount = mounts("s3://tables", endpoint=sim.url)
    found = subprocess.run(["find", str(mount.path), "-type", "f", "-printf", "%P %s\n"], capture_output=True, text=True, check=True)
    assert sorted(found.stdout.splitlines()) == sorted(f"{key} {len(body)}" for key, body in bucket.items())
    assert os.listdir(mount / "t/dt=2024-01-01") == ["part 0.parquet"]
    assert sim.requests("HEAD") == 0, "never a HEAD per entry"


def test_a_prefix_is_mounted(sim, bucket, mounts):
    mount = mounts("s3://tables/t", endpoint=sim.url)
    assert (mount / "size-4097").read_bytes() == bucket["t/size-4097"]
    assert not (mount / "top").exists()


def test_read_only_is_honest(sim, bucket, mounts):
    mount = mounts("s3://tables", endpoint=sim.url)
    for action in (lambda: open(mount / "new", "w"), lambda: open(mount / "top", "r+"), lambda: os.unlink(mount / "top"),
                   lambda: os.mkdir(mount / "d"), lambda: os.chmod(mount / "top", 0o600), lambda: os.utime(mount / "top"),
                   lambda: os.rename(mount / "top", mount / "other"), lambda: os.symlink("x", mount / "link")):
        with pytest.raises(OSError) as caught:
            action()
        assert caught.value.errno == 30, caught.value  # EROFS
    assert (mount / "top").read_bytes() == b"three"


def test_random_and_parallel_reads(sim, bucket, mounts, payload):
    body = bucket["t/size-20971520"]
    mount = mounts("s3://tables", endpoint=sim.url)
    script = ("import os, sys, random, hashlib\n"
              "fd = os.open(sys.argv[1], os.O_RDONLY); r = random.Random(int(sys.argv[2])); h = hashlib.md5()\n"
              "for _ in range(200):\n"
              "    offset = r.randrange(20 << 20); h.update(os.pread(fd, r.choice([1, 100, 4096, 70000, 1 << 20]), offset))\n"
              "print(h.hexdigest())\n")
    import random
    import sys
    jobs = [subprocess.Popen([sys.executable, "-c", script, str(mount / "t/size-20971520"), str(seed)], stdout=subprocess.PIPE, text=True)
            for seed in range(4)]
    for seed, job in enumerate(jobs):
        r, want = random.Random(seed), hashlib.md5()
        for _ in range(200):
            offset = r.randrange(20 << 20)
            want.update(body[offset:offset + r.choice([1, 100, 4096, 70000, 1 << 20])])
        assert job.communicate()[0].strip() == want.hexdigest()


def test_file_store_needs_no_s3(tmp_path, mounts, payload):
    (tmp_path / "tables/a").mkdir(parents=True)
    (tmp_path / "tables/a/f").write_bytes(payload(3 << 20))
    mount = mounts(f"file://{tmp_path}/tables")
    assert (mount / "a/f").read_bytes() == payload(3 << 20)
    assert sorted(os.listdir(mount.path)) == ["a"]


def test_umount_leaves_nothing(sim, bucket, mounts):
    mount = mounts("s3://tables", endpoint=sim.url)
    assert (mount / "top").read_bytes() == b"three"
    pid = mount.pid()
    assert pid > 0
    mount.unmount()
    assert not os.path.ismount(mount.path)
    assert harness.Mount._is_zombie(pid), "gone, or only waiting for its parent to notice"
