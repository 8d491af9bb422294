#!/usr/bin/env python3
"""The two market-data queries on DuckDB, as one process that prints its seconds and keeps its result for comparison.

Query 1: one-minute bars (averages per symbol and minute) of quotes and trades, full outer join.
Query 2: sum of bid sizes by symbol and market.
"""
import argparse
import json
import sys
import time

import duckdb
import numpy as np
import pyarrow.parquet as pq

QUOTE_COLUMNS = ["BidPrice", "BidSize", "BidOrders", "AskPrice", "AskSize", "AskOrders"]
TRADE_COLUMNS = ["Price", "Size", "TradeId", "CumVolume"]


def bars(root, table, columns):
    averages = ", ".join(f"avg({c}) as {c}" for c in columns)
    return (f"(select Date, LocalCodeStr, time_bucket(interval '1 minute', Timestamp) as Minute, {averages} "
            f"from read_parquet('{root}/{table}/*/*.parquet', hive_partitioning = true) group by all)")


def query(name, root):
    if name == "q1":
        return (f"select * from {bars(root, 'EquityTradeL1', TRADE_COLUMNS)} t full outer join "
                f"{bars(root, 'EquityQuoteL1', QUOTE_COLUMNS)} q using (Date, LocalCodeStr, Minute)")
    return (f"select Date, LocalCodeStr, LocalCodeMarketId, sum(BidSize) as BidSize "
            f"from read_parquet('{root}/EquityQuoteL1/*/*.parquet', hive_partitioning = true) group by all")


def run(name, root, output, threads):
    db = duckdb.connect()
    # DuckDB's own cache would hide the file system that is measured.
    db.execute("set enable_external_file_cache = false")
    db.execute(f"set threads = {threads}")
    db.execute("set TimeZone = 'UTC'")
    started = time.monotonic()
    db.execute(f"create temp table result as {query(name, root)}")
    seconds = time.monotonic() - started
    keys = "Date, LocalCodeStr, " + ("Minute" if name == "q1" else "LocalCodeMarketId")
    db.execute(f"copy (select * from result order by {keys}) to '{output}' (format parquet)")
    return {"seconds": seconds, "rows": db.execute("select count(*) from result").fetchone()[0]}


def equal(path_a, path_b):
    """Whether two kept results are the same: keys exactly, averages to 1e-9 (the engine adds in thread order)."""
    a, b = pq.read_table(path_a), pq.read_table(path_b)
    if a.column_names != b.column_names or a.num_rows != b.num_rows:
        return False
    for name in a.column_names:
        left, right = a.column(name).combine_chunks(), b.column(name).combine_chunks()
        if str(left.type) == "double":
            if not np.allclose(left.to_numpy(zero_copy_only=False), right.to_numpy(zero_copy_only=False), rtol=1e-9, equal_nan=True):
                return False
        elif not left.equals(right):
            return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("query", choices=["q1", "q2"])
    parser.add_argument("root")
    parser.add_argument("output", help="Parquet file for the result")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    json.dump(run(options.query, options.root, options.output, options.threads), sys.stdout)


if __name__ == "__main__":
    main()
