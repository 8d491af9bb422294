"""Readers against a cache that is far too small and emptied all the time: never a wrong byte, never an error, never over the limit."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import harness
import pytest

HERE = pathlib.Path(__file__).resolve()
SECONDS = 8
READERS = 8
LIMIT = 64 << 20
# 256 MiB: objects larger than a fetch, of a few pages, and without a sidecar; sizes that end within a block.
FILES = {f"big-{n}": (48 << 20) + 4096 * n + n for n in range(3)} | {f"mid/m{n:02}": (2 << 20) + 777 * n for n in range(40)} | \
        {f"small/s{n:03}": 3_000 + 190 * n for n in range(400)}


def read_at_random(local, mounted, seed, until):
    """Compares what the mount gives with the original, by every way to read, until the time is over. Runs in a process of its own."""
    import mmap
    import random

    choose = random.Random(seed)
    names = list(FILES)
    weights = [200] * 3 + [10] * 40 + [1] * 400
    done = {"reads": 0, "bytes": 0}
    page = mmap.mmap(-1, 1 << 20)  # aligned, for O_DIRECT

    def check(what, name, offset, got, want):
        if got != want:
            first = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
            raise SystemExit(f"{what} of {name} at {offset}: {len(got)} bytes for {len(want)}, first difference at {offset + first}")
        done["reads"] += 1
        done["bytes"] += len(got)

    while time.monotonic() < until:
        name = choose.choices(names, weights)[0]
        size = FILES[name]
        original = os.open(f"{local}/{name}", os.O_RDONLY)
        direct = choose.random() < 0.4
        fd = os.open(f"{mounted}/{name}", os.O_RDONLY | (os.O_DIRECT if direct else 0))
        try:
            way = choose.choice(["random", "random", "run", "map"])
            if way == "map" and not direct:
                with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as view:
                    for _ in range(20):
                        offset = choose.randrange(size)
                        want = os.pread(original, choose.choice([1, 5000, 130_000]), offset)
                        check("mmap", name, offset, view[offset:offset + len(want)], want)
            else:
                at = choose.randrange(size)
                for _ in range(choose.choice([1, 8, 60])):
                    length = choose.choice([1, 128, 4096, 65_536, 300_000, 1 << 20])
                    if direct:
                        at -= at % 4096
                        length = max(4096, length - length % 4096)
                        count = os.preadv(fd, [memoryview(page)[:length]], at)
                        got = page[:count]
                    else:
                        got = os.pread(fd, length, at)
                    want = os.pread(original, length, at)
                    check("direct" if direct else "pread", name, at, got, want)
                    at = at + len(got) if way == "run" and at + len(got) < size else choose.randrange(size)
            # The kernel must not answer for the daemon.
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
            os.close(original)
    print(json.dumps(done))


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    import random

    root = tmp_path_factory.mktemp("pressure")
    for n, (name, size) in enumerate(FILES.items()):
        path = root / "tables" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random.Random(n).randbytes(size))
    return root


def used_bytes(mount):
    """Bytes on disk of all object files and sidecars, those included that have no name any more but are open. The daemon stands still
    meanwhile, so that it is the truth of one moment."""
    pid = mount.pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        harness.wait_for(lambda: pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "Tt", 10, "the daemon to stand still")
        opened = [fd for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir() if "/objects/" in os.readlink(fd)]
        found = [path.stat() for path in [*mount.cache.rglob("objects/*/*"), *opened]]
        return sum({(info.st_dev, info.st_ino): info.st_blocks * 512 for info in found}.values())
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("store", ["s3", "file"])
def test_small_cache_many_readers_and_free(thermo, original, store):
    with harness.Sim(thermo, original, "--first-byte-ms", "3") as sim:
        source, endpoint = ("s3://tables", sim.url) if store == "s3" else (f"file://{original}/tables", None)
        with harness.Mount(thermo, source, "--cache-size", str(LIMIT), "--memory", "64MiB", "--metrics", "127.0.0.1:0", endpoint=endpoint) as mount:
            until = time.monotonic() + SECONDS
            command = [sys.executable, str(HERE), str(original / "tables"), str(mount.path)]
            jobs = [subprocess.Popen([*command, str(seed), str(until)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     env=dict(os.environ, PYTHONPATH=str(HERE.parents[1]))) for seed in range(READERS)]
            most = frees = 0
            try:
                while any(job.poll() is None for job in jobs) and time.monotonic() < until + 60 * harness.SLOW:
                    what = [mount.path, mount / "big-0", mount / "mid", mount / "small"][frees % 4]
                    mount.run("free", what)
                    frees += 1
                    most = max(most, used_bytes(mount))
                    time.sleep(0.2)
                results = []
                for job in jobs:
                    out, err = job.communicate(timeout=60 * harness.SLOW)
                    assert job.returncode == 0, err[-2000:]
                    results.append(json.loads(out))
            finally:
                for job in jobs:
                    if job.poll() is None:
                        job.kill()
                    job.wait(10)
            metrics = mount.metrics()
            log = mount.log()
    print(store, "reads", sum(r["reads"] for r in results), "MiB", sum(r["bytes"] for r in results) >> 20, "frees", frees, "most MiB", most >> 20,
          {name: value for name, value in metrics.items() if "evict" in name or "served" in name})
    assert frees >= 8
    assert all(r["reads"] > 20 for r in results), "every reader came through"
    assert metrics["thermocline_cache_evictions_total"] > 0, "the limit was met"
    assert most <= LIMIT
    assert " E " not in log and len(log.splitlines()) < 100, log


if __name__ == "__main__":
    read_at_random(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
