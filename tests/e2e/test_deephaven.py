"""Deephaven reads market data through a mount whose folders are linked into a database root, and finds what it finds on the local disk.

The database root (the reference layout of a historical database):

  db/Systems/Equities/FeedPQ           -> MOUNT/FeedPQ            key=value layout: FeedPQ/<Table>/Date=<date>/part-0000.parquet
  db/Systems/Equities/Quotes           -> MOUNT/FeedPQ/EquityQuoteL1      a table's own folder is the link
  db/Systems/Equities/Partitions/<n>   -> MOUNT/Partitions/<n>    nested layout: <n>/<date>/<Table>/table.parquet
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import harness
import marketdata
import pytest
import queries

HERE = pathlib.Path(__file__).resolve().parent
TABLES = ("EquityQuoteL1", "EquityTradeL1")
HEAP = "2g"


def java_home():
    """Of the java on PATH, when it is new enough for the server (17); else the reason why not."""
    java = shutil.which("java")
    if not java:
        return None, "java is not installed: apt-get install openjdk-17-jre-headless"
    said = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    version = said.split('"')[1] if '"' in said else "0"
    if int(version.split(".")[0]) < 17:
        return None, f"Deephaven needs Java 17 or newer, this is {version}"
    return str(pathlib.Path(java).resolve().parent.parent), ""


@pytest.fixture(scope="module")
def java():
    home, why_not = java_home()
    if not home:
        pytest.skip(why_not)
    pytest.importorskip("deephaven_server", reason="deephaven-server is not installed: ./dev setup")
    return home


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """Both tables in both layouts on the local disk; symbols do not matter to the layout, so each date goes to one internal partition."""
    root = tmp_path_factory.mktemp("local")
    marketdata.generate(root / "FeedPQ", quote_rows=60_000, trade_rows=6_000)
    for n, date in enumerate(marketdata.DATES):
        for table in TABLES:
            target = root / f"Partitions/{n % 2}/{date}/{table}/table.parquet"
            target.parent.mkdir(parents=True)
            shutil.copy(root / f"FeedPQ/{table}/Date={date}/part-0000.parquet", target)
    return root


def link_database(root, source):
    """A database root whose storage is linked in, as an administrator would."""
    namespace = root / "Systems/Equities"
    (namespace / "Partitions").mkdir(parents=True)
    (namespace / "FeedPQ").symlink_to(source / "FeedPQ")
    for table, name in zip(TABLES, ("Quotes", "Trades")):
        (namespace / name).symlink_to(source / "FeedPQ" / table)
    for n in ("0", "1"):
        (namespace / "Partitions" / n).symlink_to(source / "Partitions" / n)
    return namespace


def open_step(layout, name, namespace):
    if layout == "key=value":
        quotes, trades = f"{namespace}/FeedPQ/{TABLES[0]}", f"{namespace}/FeedPQ/{TABLES[1]}"
    elif layout == "linked":
        # Java's walk does not follow a link that is its start; "/." makes it the folder behind the link.
        quotes, trades = f"{namespace}/Quotes/.", f"{namespace}/Trades/."
    else:
        quotes, trades = (f"nested:{namespace}/Partitions:{table}" for table in TABLES)
    return {"table": name, "quotes": quotes, "trades": trades}


def query_step(name, query):
    return {"name": f"{name} {query}", "query": query, "table": name}


def run_deephaven(java, work, steps):
    plan = {"port": harness.free_port(), "work": str(work), "heap": HEAP, "steps": steps}
    process = subprocess.Popen([sys.executable, str(HERE / "deephaven_queries.py"), json.dumps(plan)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=work, env=dict(os.environ, JAVA_HOME=java))
    try:
        out, err = process.communicate(timeout=150 * harness.SLOW)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)
    assert process.returncode == 0, f"{out[-3000:]}\n{err[-6000:]}"
    return json.loads(out.splitlines()[-1])


def test_queries_through_linked_folders_equal_local(java, local, weed, thermo, mounts, tmp_path):
    client = weed.client()
    client.create_bucket(Bucket="deephaven")
    for path in sorted(local.rglob("*.parquet")):
        client.upload_file(str(path), "deephaven", str(path.relative_to(local)))
    work = tmp_path / "work"
    work.mkdir()
    with harness.Sim(thermo, "--proxy", weed.url, "--first-byte-ms", "5") as sim:
        mount = mounts("s3://deephaven", "--ttl", "1s", endpoint=sim.url)
        here = link_database(tmp_path / "local-db", local)
        there = link_database(tmp_path / "db", mount.path)
        # Names expire and the kernel forgets them between two queries on the same open tables: Deephaven closes and opens their files again
        # and refuses one whose (st_dev, st_ino) is not what it was.
        forget = {"forget": 1.2}
        seconds = run_deephaven(java, work, [
            open_step("key=value", "local", here), query_step("local", "q2"), query_step("local", "q1"),
            open_step("key=value", "cold", there), query_step("cold", "q2"), forget, query_step("cold", "q1"), forget,
            open_step("key=value", "warm", there), query_step("warm", "q2"), forget, query_step("warm", "q1"),
            open_step("linked", "linked", there), query_step("linked", "q2"),
            open_step("nested", "nested", there), query_step("nested", "q2"), query_step("nested", "q1")])
        fetched = sum(entry[2] if isinstance(entry, list) else entry["length"] for entry in sim.stats()["ranges"])
    print("seconds by step:", seconds)
    for query in ("q1", "q2"):
        expected = work / f"local {query}.parquet"
        assert queries.pq.read_metadata(expected).num_rows > 10_000
        for when in ("cold", "warm", "nested", *(["linked"] if query == "q2" else [])):
            assert queries.equal(expected, work / f"{when} {query}.parquet"), f"{query} {when} differs from local"
    size = sum(p.stat().st_size for p in local.rglob("*.parquet"))
    assert 0 < fetched <= 1.02 * size, f"{fetched} of {size} bytes: what was closed, forgotten and opened again is not fetched again"
    assert mount.served("warm") > 0
