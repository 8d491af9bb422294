#!/usr/bin/env python3
"""./dev bench read: reading through the mount beside the alternatives, in one run, as ratios.

Store: SeaweedFS behind `thermo s3sim --proxy` (25 ms to the first byte, 90 MB/s per connection). Alternatives: a plain C++ client with
16 parallel 8 MiB ranged GETs, and the same files on the local file system. Every row names its target; the exit code is 1 when a row
misses it (with --strict).
"""
import argparse
import json
import os
import pathlib
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]
import harness  # noqa: E402

MIB = 1 << 20


class Bench:
    def __init__(self, options, work):
        self.options = options
        self.work = work
        self.rows = []
        build = pathlib.Path(options.build)
        self.thermo, self.fsbench, self.plain = build / "thermo", build / "bench/fsbench", build / "bench/plain_client"
        self.size = options.size * MIB

    def tool(self, *command):
        result = subprocess.run([str(c) for c in command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if result.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: {result.stderr}")
        return json.loads(result.stdout)

    def fs(self, *arguments):
        return self.tool(self.fsbench, *arguments)

    def median(self, field, *arguments, times=3, before=None):
        values = []
        for _ in range(times):
            if before:
                before()
            values.append(self.fs(*arguments)[field])
        return statistics.median(values)

    def row(self, name, ours, theirs, unit, ratio, target, ok):
        self.rows.append({"name": name, "ours": ours, "theirs": theirs, "unit": unit, "ratio": ratio, "target": target, "ok": ok})
        other = "" if theirs is None else f"{theirs:12.1f}"
        shown = "" if ratio is None else f"{ratio:7.2f}"
        print(f"{name:58} {ours:12.1f} {other:>12} {unit:8} {shown:>7}  {target:24} {'ok' if ok else 'MISSED'}", flush=True)

    def at_least(self, name, ours, theirs, unit, target, against="local"):
        ratio = ours / theirs
        self.row(name, ours, theirs, unit, ratio, f">= {target} of {against}", ratio >= target)

    def at_most(self, name, ours, unit, target, theirs=None):
        self.row(name, ours, theirs, unit, None, f"<= {target} {unit}", ours <= target)

    # --- data ---------------------------------------------------------------------------------------------------------------------

    def make_data(self, client):
        print(f"# data: 2 x {self.options.size} MiB, 4,000 files of 4 KiB in 200 folders, {self.options.names} names in one folder", flush=True)
        client.create_bucket(Bucket="bench")
        local = self.work / "local"
        rng = random.Random(1)
        for name in ("big1", "big2"):
            piece = rng.randbytes(16 * MIB)
            (local).mkdir(exist_ok=True)
            with open(local / name, "wb") as f:
                for _ in range(self.size // len(piece)):
                    f.write(piece)
            client.upload_file(str(local / name), "bench", name)
        jobs = []
        small = rng.randbytes(4096)
        for folder in range(200):
            path = local / f"tree/d{folder // 10:02}/e{folder % 10}"
            path.mkdir(parents=True)
            for name in range(20):
                (path / f"f{name:02}").write_bytes(small)
                jobs.append((f"tree/d{folder // 10:02}/e{folder % 10}/f{name:02}", small))
        (local / "wide").mkdir()
        for name in range(self.options.names):
            (local / f"wide/n{name:06}").write_bytes(b"x")
            jobs.append((f"wide/n{name:06}", b"x"))
        jobs.append(("deep/one/two/file", rng.randbytes(2 * MIB)))
        jobs.append(("deep/one/two/large", rng.randbytes(32 * MIB)))
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda job: client.put_object(Bucket="bench", Key=job[0], Body=job[1]), jobs))
        return local

    # --- measurements -------------------------------------------------------------------------------------------------------------

    def fresh_mount(self, sim, *flags):
        return harness.Mount(self.thermo, "s3://bench", "--memory", f"{self.options.memory}MiB", *flags, endpoint=sim.url)

    def cold(self, sim):
        plain, ours, gets, fetched = [], [], [], []
        for turn in range(self.options.runs):
            url = f"{sim.url}/bench/big1"
            harness.drop_page_cache()
            plain.append(self.tool(self.plain, url, self.size)["mb_s"])
            with self.fresh_mount(sim) as mount:
                os.stat(mount / "big1")
                harness.drop_page_cache()
                sim.reset()
                ours.append(self.fs("seq", mount / "big1", MIB)["mb_s"])
                stats = sim.stats()
                gets.append(stats["requests"]["GET"])
                fetched.append(sum(r["length"] if isinstance(r, dict) else r[2] for r in stats["ranges"]) / self.size)
                sim.reset()
                self.fs("seq", mount / "big1", MIB)
                again = sim.requests("GET")
        self.at_least("cold sequential, one stream (MB/s)", statistics.median(ours), statistics.median(plain), "MB/s", 0.9, "plain client")
        self.cold_behind_a_link(sim)
        self.at_most(f"  GETs for {self.options.size} MiB read once", max(gets), "GETs", 70 * self.options.size // 512 + 2)
        self.at_most("  bytes fetched per byte read", max(fetched), "x", 1.02)
        self.at_most("  GETs of a second reader", again, "GETs", 0)

    def cold_behind_a_link(self, sim):
        """The same where the link is the limit, not the cores that store, shim, client and daemon share."""
        plain, ours = [], []
        sim.options(total="400MB/s")
        for _ in range(self.options.runs):
            harness.drop_page_cache()
            plain.append(self.tool(self.plain, f"{sim.url}/bench/big1", self.size)["mb_s"])
            with self.fresh_mount(sim) as mount:
                os.stat(mount / "big1")
                harness.drop_page_cache()
                ours.append(self.fs("seq", mount / "big1", MIB)["mb_s"])
        sim.options(total=0)
        self.at_least("  the same behind a link of 400 MB/s", statistics.median(ours), statistics.median(plain), "MB/s", 0.9, "plain client")

    def first_byte(self, sim):
        times, known, whole = [], [], []
        for _ in range(self.options.runs):
            with self.fresh_mount(sim) as mount:
                times.append(self.fs("firstbyte", mount / "deep/one/two/file")["ms"])
            with self.fresh_mount(sim) as mount:
                os.listdir(mount / "deep/one/two")
                known.append(self.fs("firstbyte", mount / "deep/one/two/large")["ms"])
                whole.append(self.fs("firstbyte", mount / "deep/one/two/file")["ms"])
        trip = self.round_trip(sim)
        self.at_most(f"first byte, cold, two folders down (round trip {trip:.1f} ms)", statistics.median(times), "ms", round(3 * trip + 10, 1))
        self.at_most("first byte, cold, in a known folder", statistics.median(known), "ms", round(trip + 5, 1))
        # Plain HTTP: nothing is handed on before all of it was compared with the store's checksum.
        transfer = 2 * MIB / (90e6 / 1e3)
        self.at_most("  the same of 2 MiB, kept back until verified", statistics.median(whole), "ms", round(trip + transfer + 5, 1))

    def round_trip(self, sim):
        client = sim.client()
        values = []
        for _ in range(7):
            started = time.monotonic()
            client.get_object(Bucket="bench", Key="wide/n000001")["Body"].read()
            values.append((time.monotonic() - started) * 1e3)
        return statistics.median(values)

    def names(self, sim):
        walks, lists, wides = [], [], []
        for _ in range(self.options.runs):
            with self.fresh_mount(sim) as mount:
                sim.reset()
                walks.append(self.fs("walk", mount / "tree")["seconds"])
                stats = sim.stats()["requests"]
                lists.append(stats.get("LIST", 0))
                assert stats.get("HEAD", 0) == 0, "a walk sends no HEAD"
                wides.append(self.fs("ls", mount / "wide")["seconds"])
        self.at_most("walk of 4,220 entries, cold", statistics.median(walks) * 1e3, "ms", 500)
        self.at_most("  LISTs of the walk", max(lists), "LISTs", 8)
        self.at_most(f"{self.options.names} names in one folder, cold", statistics.median(wides) * 1e3, "ms", 700)

    def warm(self, sim, local):
        with self.fresh_mount(sim) as mount:
            self.fs("seq", mount / "big1", MIB)
            mount.json("load", mount / "big1")
            mount.remount()
            drop = harness.drop_page_cache
            path, same = mount / "big1", local / "big1"
            # The backing file of the cache and the local file are both on this machine's disk; the page cache is dropped before each.
            count = 4000
            for name, arguments, target in (("warm random 4 KiB, page cache dropped (reads/s)", ("rand", 4096, count, 7), 0.6),):
                ours = self.median("per_s", arguments[0], path, *arguments[1:], before=drop)
                theirs = self.median("per_s", arguments[0], same, *arguments[1:], before=drop)
                self.at_least(name, ours, theirs, "/s", target)
            ours = self.median("mb_s", "seq", path, MIB, before=drop)
            theirs = self.median("mb_s", "seq", same, MIB, before=drop)
            self.at_least("warm sequential 1 MiB, page cache dropped (MB/s)", ours, theirs, "MB/s", 0.6)
            for file in (path, same):
                self.fs("seq", file, MIB)
            ours = self.median("median_us", "rand", path, 4096, 50000, 9)
            theirs = self.median("median_us", "rand", same, 4096, 50000, 9)
            self.row("page-cached random 4 KiB (us)", ours, theirs, "us", theirs / ours, ">= 0.7 of local", theirs / ours >= 0.7)
            ours = self.median("mb_s", "seq", path, MIB)
            theirs = self.median("mb_s", "seq", same, MIB)
            self.at_least("page-cached sequential 1 MiB (MB/s)", ours, theirs, "MB/s", 0.3)
            self.at_most("open+close of a warm file", self.median("median_us", "openclose", path, 2000), "us", 30)
            self.at_most("open+read 4 KiB+close of a warm file", self.median("median_us", "openread", path, 2000), "us", 60)
            private = mount.status()["memory"]["process"]["private"] / MIB
            self.at_most("daemon private memory (buffer budget included)", private, "MiB", 150 + self.options.memory)

    def run(self):
        with harness.SeaweedFS() as weed:
            local = self.make_data(weed.client())
            with harness.Sim(self.thermo, "--proxy", weed.url, "--first-byte-ms", "25", "--per-connection", "90MB/s") as sim:
                print(f"\n{'':58} {'ours':>12} {'alternative':>12} {'':8} {'ratio':>7}  target")
                wanted = self.options.only.split(",") if self.options.only else ["cold", "first_byte", "names", "warm"]
                for name in wanted:
                    getattr(self, name)(*([sim, local] if name == "warm" else [sim]))
        if self.options.json:
            pathlib.Path(self.options.json).write_text(json.dumps({"machine": machine(), "rows": self.rows}, indent=1))
        missed = [row["name"] for row in self.rows if not row["ok"]]
        print(f"\n{len(self.rows) - len(missed)} of {len(self.rows)} rows reach their target")
        return 1 if missed and self.options.strict else 0


def machine():
    memory = int(next(line for line in open("/proc/meminfo") if line.startswith("MemTotal")).split()[1]) // (1 << 20)
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    return {"cores": os.cpu_count(), "cpu": model, "memory_gib": memory, "kernel": platform.release(),
            "file_system": subprocess.run(["stat", "-f", "-c", "%T", tempfile.gettempdir()], capture_output=True, text=True).stdout.strip()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build folder with thermo and the benchmark programs")
    parser.add_argument("--size", type=int, default=512, help="MiB of each big file (a multiple of 16)")
    parser.add_argument("--names", type=int, default=20000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--memory", type=int, default=256, help="MiB of the daemon's buffer budget")
    parser.add_argument("--only", help="comma list of cold, first_byte, names, warm")
    parser.add_argument("--json", help="also write the rows to this file")
    parser.add_argument("--strict", action="store_true", help="exit code 1 when a row misses its target")
    options = parser.parse_args()
    print("# machine: " + ", ".join(f"{k} {v}" for k, v in machine().items()))
    if os.geteuid() != 0:
        print("# not root: the page cache cannot be dropped; warm rows measure it instead of the disk")
    work = pathlib.Path(tempfile.mkdtemp(prefix="thermo_bench_"))
    try:
        return Bench(options, work).run()
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
