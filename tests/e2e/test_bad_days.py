"""Bad days of the store, the network and the cache's disk: never a wrong byte, never a hang, never ENOENT for a store that is down."""
import errno
import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time

import harness
import pytest


def read_in(path, seconds):
    """Reads a file in a process of its own with a time limit: (errno or 0, bytes)."""
    script = "import sys\ntry: sys.stdout.buffer.write(open(sys.argv[1],'rb',buffering=0).readall())\nexcept OSError as e: sys.exit(e.errno)"
    import sys
    result = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, timeout=seconds * harness.SLOW)
    return result.returncode, result.stdout


def test_endpoint_down_later_and_back(sim, mounts, payload):
    client = sim.client()
    client.put_object(Bucket="tables", Key="cached", Body=payload(2 << 20))
    client.put_object(Bucket="tables", Key="other", Body=payload(2 << 20, 2))
    mount = mounts("s3://tables", "--timeout", "3s", "--ttl", "1s", endpoint=sim.url)
    assert (mount / "cached").read_bytes() == payload(2 << 20)
    keep = os.open(mount / "cached", os.O_RDONLY)
    os.stat(mount / "other")
    sim.pause()
    try:
        assert os.pread(keep, 1 << 20, 1 << 20) == payload(2 << 20)[1 << 20:], "what is cached is read while the store is down"
        time.sleep(1.2)  # the names have expired
        started = time.monotonic()
        code, _ = read_in(mount / "other", 30)
        assert code == errno.EIO, "an unreachable store is never ENOENT"
        assert time.monotonic() - started < 12 * harness.SLOW
        with pytest.raises(OSError) as caught:
            os.stat(mount / "never-there")
        assert caught.value.errno == errno.EIO
    finally:
        sim.resume()
    os.close(keep)
    harness.wait_for(lambda: read_in(mount / "other", 30) == (0, payload(2 << 20, 2)), 20, "the store to be used again")


def test_throttled_store_is_never_enoent(sim, mounts, payload):
    for i in range(30):
        sim.client().put_object(Bucket="tables", Key=f"d/f{i}", Body=payload(10_000, i))
    mount = mounts("s3://tables", "--ttl", "1s", endpoint=sim.url)
    sim.faults("slowdown=0.4")
    for i in range(30):
        assert (mount / f"d/f{i}").read_bytes() == payload(10_000, i)
    sim.faults("slowdown=1")
    time.sleep(1.2)
    code, _ = read_in(mount / "d/new-name", 60)
    assert code == errno.EIO
    sim.faults("")
    assert not (mount / "d/new-name").exists()


@pytest.mark.parametrize("spec", ["cut=0.3", "reset=0.3", "drop=0.3", "error500=0.3", "slowdown=0.3", "etag=0.2", "cut=0.1,reset=0.1,drop=0.1,slowdown=0.1"])
def test_broken_answers_never_give_a_wrong_byte(sim, mounts, payload, spec):
    size = 24 << 20
    sim.client().put_object(Bucket="tables", Key="big", Body=payload(size))
    for i in range(20):
        sim.client().put_object(Bucket="tables", Key=f"small/{i}", Body=payload(50_000, i))
    mount = mounts("s3://tables", "--timeout", "20s", endpoint=sim.url)
    sim.faults("@".join([spec, "GET"]) if "," not in spec else ",".join(part + "@GET" for part in spec.split(",")))
    stale = 0
    for name, body in [("big", payload(size))] + [(f"small/{i}", payload(50_000, i)) for i in range(20)]:
        code, got = read_in(mount / name, 90)
        if code == 0:
            assert got == body, name
        else:
            assert code in (errno.EIO, errno.ESTALE), code
            stale += 1
    sim.faults("")
    time.sleep(0.1)
    code, got = read_in(mount / "big", 60)
    assert (code, got) == (0, payload(size)), "once the store is well, everything is read"
    assert stale <= 12


def test_stalled_body_ends_in_time(sim, mounts, payload):
    sim.client().put_object(Bucket="tables", Key="f", Body=payload(9 << 20))
    mount = mounts("s3://tables", "--timeout", "4s", endpoint=sim.url)
    sim.faults("stall=1:60s@GET")
    started = time.monotonic()
    code, _ = read_in(mount / "f", 60)
    assert code == errno.EIO
    assert time.monotonic() - started < 25 * harness.SLOW
    sim.faults("")
    assert (mount / "f").read_bytes() == payload(9 << 20)


def test_a_flipped_byte_on_the_wire_is_caught_where_the_store_has_a_checksum(sim, mounts, payload):
    """Whole objects up to 8 MiB are compared with the store's own checksum before a byte leaves."""
    client = sim.client()
    for i in range(40):
        client.put_object(Bucket="tables", Key=f"f{i}", Body=payload(300_000 + i, i), ChecksumAlgorithm="CRC32")
    mount = mounts("s3://tables", endpoint=sim.url)
    sim.faults("flip=0.3@GET")
    for i in range(40):
        assert (mount / f"f{i}").read_bytes() == payload(300_000 + i, i)
    assert sim.stats()["faults"].get("flip", 0) > 0, "the fault was injected"


def test_replaced_while_read_is_old_or_new_or_stale_never_a_mix(sim, mounts, payload):
    size = 24 << 20
    client = sim.client()
    # Slow, and little memory to fetch ahead: most GETs of a read are sent after its first bytes came.
    sim.options(first_byte_ms=5, total="60MB/s")
    mount = mounts("s3://tables", "--ttl", "1s", "--memory", "16MiB", endpoint=sim.url)
    outcomes = set()
    for turn in range(6):
        # Never seen before: nothing of them is in the cache. The second one is small, so that it is there at once.
        old, new = bytes([2 * turn]) * size, bytes([2 * turn + 1]) * 1000
        client.put_object(Bucket="tables", Key="f", Body=old)
        time.sleep(1.1)
        assert os.stat(mount / "f").st_size == size
        timer = threading.Timer(0.06 * turn * harness.SLOW, lambda body=new: client.put_object(Bucket="tables", Key="f", Body=body))
        timer.start()
        code, got = read_in(mount / "f", 60)
        timer.join()
        assert code in (0, errno.ESTALE), code
        if code == 0:
            assert got in (old, new), "a mixture of two versions"
        outcomes.add("stale" if code else "old" if got == old else "new")
        harness.wait_for(lambda: read_in(mount / "f", 60)[0] == 0, 10, "the next open to succeed")
    assert "stale" in outcomes, f"no replacement fell into a read: {outcomes}"


def test_same_size_replacement_is_seen_after_the_ttl(sim, mounts):
    client = sim.client()
    client.put_object(Bucket="tables", Key="d/f", Body=b"A" * 100_000)
    mount = mounts("s3://tables", "--ttl", "1s", endpoint=sim.url)
    assert (mount / "d/f").read_bytes() == b"A" * 100_000
    inode = os.stat(mount / "d/f").st_ino
    client.put_object(Bucket="tables", Key="d/f", Body=b"B" * 100_000)
    time.sleep(1.2)
    assert (mount / "d/f").read_bytes() == b"B" * 100_000
    assert os.stat(mount / "d/f").st_ino != inode, "somebody else's file is another file"


def test_deleted_while_open(sim, mounts, payload):
    client = sim.client()
    client.put_object(Bucket="tables", Key="d/f", Body=payload(20 << 20))
    client.put_object(Bucket="tables", Key="d/g", Body=b"stays")
    mount = mounts("s3://tables", "--ttl", "1s", endpoint=sim.url)
    fd = os.open(mount / "d/f", os.O_RDONLY)
    first = os.pread(fd, 4096, 0)
    assert first == payload(20 << 20)[:4096]
    client.delete_object(Bucket="tables", Key="d/f")
    time.sleep(1.2)
    try:
        got = os.pread(fd, 1 << 20, 18 << 20)
        assert got == payload(20 << 20)[18 << 20:19 << 20]
    except OSError as error:
        assert error.errno == errno.ESTALE
    os.close(fd)
    assert not (mount / "d/f").exists()
    assert os.listdir(mount / "d") == ["g"]


def test_kill_9_in_the_middle_of_fills(sim, mounts, payload):
    """Ten times: kill the daemon while it fills, mount again over the dead mount point, compare."""
    size = 32 << 20
    body = payload(size)
    sim.client().put_object(Bucket="tables", Key="f", Body=body)
    sim.options(first_byte_ms=2, per_connection="60MB/s")
    mount = mounts("s3://tables", endpoint=sim.url)
    rng = random.Random(7)
    for turn in range(10):
        reader = subprocess.Popen(["cat", str(mount / "f")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.02, 0.4))
        mount.kill()
        reader.wait(30)
        result = mount.try_start()
        assert result.returncode == 0, result.stderr
        assert "dead" in result.stderr or "not answering" in result.stderr or "replaced" in result.stderr, "the message names the dead mount"
        with open(mount / "f", "rb") as f:
            offset = rng.randrange(size - 100_000)
            f.seek(offset)
            assert f.read(100_000) == body[offset:offset + 100_000]
    assert (mount / "f").read_bytes() == body


def objects_of(mount):
    return [p for p in (mount.cache / "objects").rglob("*") if p.is_file()] if (mount.cache / "objects").exists() else \
        [p for p in mount.cache.rglob("objects/*/*") if p.is_file()]


@pytest.mark.parametrize("harm", ["flip-data", "truncate-data", "zero-data", "delete-data", "truncate-sidecar", "flip-sidecar", "delete-sidecar", "garbage-sidecar"])
def test_damaged_cache_files_heal(sim, mounts, payload, harm):
    body = payload(6 << 20)
    sim.client().put_object(Bucket="tables", Key="f", Body=body)
    mount = mounts("s3://tables", endpoint=sim.url)
    assert (mount / "f").read_bytes() == body
    mount.unmount()
    files = objects_of(mount)
    sidecars = [p for p in files if p.suffix == ".sum"]
    victims = [p for p in files if p.suffix != ".sum"] if harm.endswith("data") else sidecars
    assert len(victims) == 1
    victim = victims[0]
    size = victim.stat().st_size
    action = harm.split("-")[0]
    if action == "delete":
        victim.unlink()
    elif action == "truncate":
        os.truncate(victim, size // 2)
    else:
        with open(victim, "r+b") as f:
            for offset in range(0, size, max(1, size // 40)):
                f.seek(offset)
                byte = f.read(1)
                f.seek(offset)
                f.write({"flip": bytes([byte[0] ^ 0x40]), "zero": b"\0" * 64, "garbage": os.urandom(64)}[action])
    harness.drop_page_cache()
    mount.start()
    assert (mount / "f").read_bytes() == body
    harness.drop_page_cache()
    assert (mount / "f").read_bytes() == body


@pytest.mark.parametrize("harm", ["delete", "corrupt", "truncate", "empty"])
def test_lost_databases_are_rebuilt(sim, mounts, payload, harm):
    body = payload(6 << 20)
    sim.client().put_object(Bucket="tables", Key="f", Body=body)
    sim.client().put_object(Bucket="tables", Key="small", Body=b"tiny")
    mount = mounts("s3://tables", endpoint=sim.url)
    assert (mount / "f").read_bytes() == body
    assert (mount / "small").read_bytes() == b"tiny"
    mount.unmount()
    databases = [p.parent for p in mount.cache.rglob("CURRENT")]
    assert len(databases) >= 2, "catalog and object records"
    for database in databases:
        if harm == "delete":
            shutil.rmtree(database)
        elif harm == "truncate":
            for file in (*database.glob("*.log"), *database.glob("*.sst")):
                os.truncate(file, file.stat().st_size // 2)
        elif harm == "empty":
            (database / "CURRENT").write_bytes(b"")
        else:
            for manifest in database.glob("MANIFEST*"):
                manifest.write_bytes(b"not a manifest")
    mount.start()
    sim.reset()
    assert (mount / "f").read_bytes() == body
    assert sim.requests("GET") == 0, "the sidecars say what is there"
    assert (mount / "small").read_bytes() == b"tiny"


def test_cache_folder_deleted_under_us(sim, mounts, payload):
    for i in range(6):
        sim.client().put_object(Bucket="tables", Key=f"f{i}", Body=payload(3 << 20, i))
    mount = mounts("s3://tables", endpoint=sim.url)
    assert (mount / "f0").read_bytes() == payload(3 << 20, 0)
    for folder in mount.cache.rglob("objects"):
        shutil.rmtree(folder)
        break
    harness.drop_page_cache()
    for i in range(6):
        assert (mount / f"f{i}").read_bytes() == payload(3 << 20, i)


def test_cache_file_system_full(sim, mounts, payload, tmp_path):
    """A tier on a 48 MiB tmpfs with a limit of 4 GiB: reads of 120 MiB go on, the log does not flood."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    disk = tmp_path / "small"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(disk)], check=True)
    try:
        for i in range(30):
            sim.client().put_object(Bucket="tables", Key=f"f{i}", Body=payload(4 << 20, i))
        mount = mounts("s3://tables", endpoint=sim.url, cache=disk / "cache")
        for _ in range(2):
            for i in range(30):
                assert (mount / f"f{i}").read_bytes() == payload(4 << 20, i)
        assert len(mount.log().splitlines()) < 200
        mount.close()
    finally:
        subprocess.run(["umount", "-l", str(disk)])


def test_byte_limit_holds(sim, mounts, payload):
    for i in range(20):
        sim.client().put_object(Bucket="tables", Key=f"f{i}", Body=payload(4 << 20, i))
    mount = mounts("s3://tables", "--cache-size", "24MiB", endpoint=sim.url)
    most = 0
    for i in range(20):
        assert (mount / f"f{i}").read_bytes() == payload(4 << 20, i)
        used = sum(p.stat().st_blocks * 512 for p in objects_of(mount))
        most = max(most, used)
    assert most <= 24 << 20
    assert mount.metrics()["thermocline_cache_evictions_total"] > 0


def test_sigterm_ends_cleanly(sim, mounts, payload):
    sim.client().put_object(Bucket="tables", Key="f", Body=payload(5 << 20))
    mount = mounts("s3://tables", endpoint=sim.url)
    assert (mount / "f").read_bytes() == payload(5 << 20)
    pid = mount.pid()
    os.kill(pid, signal.SIGTERM)
    harness.wait_for(lambda: not pathlib.Path(f"/proc/{pid}").exists(), 20, "the daemon to end")
    assert not os.path.ismount(mount.path)
    mount.start()
    sim.reset()
    assert (mount / "f").read_bytes() == payload(5 << 20)
    assert sim.requests("GET") == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a tmpfs needs root")
def test_a_daemon_that_ends_leaves_what_was_mounted_over_its_place(desk, tmp_path):
    """It unmounted by path whatever lay there."""
    (tmp_path / "f").write_text("x" * 100)
    desk.mount(f"file://{tmp_path}")
    with open(desk.mnt / "f"):
        pid = desk.pid()
        subprocess.run(["umount", "-l", desk.mnt], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", desk.mnt], check=True)
        try:
            os.kill(pid, signal.SIGTERM)
            harness.wait_for(lambda: harness.Mount._is_zombie(pid), 20, "the daemon to end")
            assert harness.is_mounted(desk.mnt)
        finally:
            subprocess.run(["umount", desk.mnt], check=False)
    desk.check_clean()
