#!/usr/bin/env python3
"""The main job on real input: two market-data tables in a slow S3, read through a Thermocline mount by DuckDB.

Generates quotes and trades (five dates, Parquet), serves them by `thermo s3sim` (25 ms to the first byte, 90 MB/s per connection),
mounts the bucket, and runs Query 1 (one-minute bars, full outer join) and Query 2 (sums by symbol and market): on the local disk, cold,
warm, and warm after a restart of the daemon. Leaves nothing running or mounted.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]
import harness  # noqa: E402
import marketdata  # noqa: E402
import queries  # noqa: E402

QUERIES = ["q1", "q2"]


def run_query(name, root, output, threads):
    command = [sys.executable, str(ROOT / "bench/queries.py"), name, str(root), str(output), "--threads", str(threads)]
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        raise RuntimeError(f"{name} on {root} failed:\n{result.stderr[-3000:]}")
    return json.loads(result.stdout)


class Demo:
    def __init__(self, options, work):
        self.options = options
        self.work = work
        self.rows = []
        self.baseline = {}
        self.ok = True

    def measure(self, title, root, sim=None, mount=None):
        for name in QUERIES:
            harness.drop_page_cache()
            if sim:
                sim.reset()
            before = {tier: mount.served(tier) for tier in ("warm", "store")} if mount else {}
            output = self.work / f"{name}-{len(self.rows)}.parquet"
            result = run_query(name, root, output, self.options.threads)
            row = {"title": title, "query": name, "seconds": result["seconds"], "rows": result["rows"]}
            if name not in self.baseline:
                self.baseline[name] = (result["seconds"], output)
            row["ratio"] = result["seconds"] / self.baseline[name][0]
            row["equal"] = queries.equal(self.baseline[name][1], output)
            self.ok &= row["equal"]
            if sim:
                stats = sim.stats()["requests"]
                row["gets"] = stats.get("GET", 0)
                row["lists"] = stats.get("LIST", 0)
                row["other"] = sum(stats.values()) - row["gets"] - row["lists"]
            if mount:
                for tier in before:
                    row[tier] = mount.served(tier) - before[tier]
            self.rows.append(row)
            print(f"   {title:28} {name}  {row['seconds']:6.2f} s  {row['ratio']:5.2f}x", flush=True)

    def table(self):
        print(f"\n{'':28} {'query':6} {'seconds':>8} {'vs local':>9} {'GET':>5} {'LIST':>5} {'other':>6} {'from S3':>10} {'from disk':>10}  equal")
        for row in self.rows:
            def megabytes(tier):
                return f"{row[tier] / 1e6:.1f} MB" if tier in row else "-"
            print(f"{row['title']:28} {row['query']:6} {row['seconds']:8.2f} {row['ratio']:8.2f}x {row.get('gets', '-'):>5} {row.get('lists', '-'):>5} "
                  f"{row.get('other', '-'):>6} {megabytes('store'):>10} {megabytes('warm'):>10}  {'yes' if row['equal'] else 'NO'}")


def demo(options, work):
    started = time.monotonic()
    bucket = work / "s3" / "marketdata"
    print(f"1. two tables, five dates, {options.quotes:,} quotes and {options.trades:,} trades a date", flush=True)
    files, size = marketdata.generate(bucket, options.quotes, options.trades)
    print(f"   {files} Parquet files, {size / 1e6:.0f} MB")
    print("2. thermo s3sim serves them: 25 ms to the first byte, 90 MB/s per connection (a stand-in for tests and demos only)")
    run = Demo(options, work)
    with harness.Sim(options.thermo, work / "s3", "--first-byte-ms", "25", "--per-connection", "90MB/s") as sim:
        print("3. thermo mount s3://marketdata", flush=True)
        with harness.Mount(options.thermo, "s3://marketdata", endpoint=sim.url) as mount:
            print(f"4. Query 1: one-minute bars of quotes and trades, full outer join; Query 2: sums by symbol and market ({options.threads} threads)")
            # The engine's own start-up (code pages) is paid before anything is timed.
            run_query("q2", bucket, work / "unused.parquet", options.threads)
            run.measure("local disk", bucket)
            run.measure("mount, cold", mount.path, sim, mount)
            run.measure("mount, warm", mount.path, sim, mount)
            mount.remount()
            run.measure("mount, warm after restart", mount.path, sim, mount)
            run.table()
            mount.unmount()
    caches = "dropped before each run" if harness.drop_page_cache() else "could not be dropped (not root): warm figures include it"
    print(f"\nPage cache {caches}. {time.monotonic() - started:.0f} s in all. Nothing is left mounted or running.")
    if not run.ok:
        print("demo: a result over the mount differs from the local one", file=sys.stderr)
    return 0 if run.ok else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thermo", required=True, help="the built binary")
    parser.add_argument("--quotes", type=int, default=1_000_000, help="quote rows per date")
    parser.add_argument("--trades", type=int, default=100_000, help="trade rows per date")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    work = pathlib.Path(tempfile.mkdtemp(prefix="thermo_demo_", dir=os.environ.get("TMPDIR")))
    try:
        return demo(options, work)
    except KeyboardInterrupt:
        print("\ndemo: stopped; everything it started is taken down", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
