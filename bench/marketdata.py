#!/usr/bin/env python3
"""Synthetic market data: quotes (EquityQuoteL1) and trades (EquityTradeL1), one Parquet file per table and date.

Layout below ROOT: <Table>/Date=YYYY-MM-DD/part-0000.parquet, which Deephaven (KV layout), DuckDB, Spark, Hive and Trino all read.
Deterministic: every value is a splitmix64 hash of (seed, date, row). Symbols are Zipf-weighted (s = 0.95 over 3,000), the day has a
U-shape with a heavy open and close, rows are sorted by (symbol, time) as a historical merge writes them.
"""
import argparse
import datetime
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DATES = ["2022-05-13", "2022-05-16", "2022-05-17", "2022-05-18", "2022-05-19"]
SYMBOLS = 3000
MARKETS = ["XNAS", "ARCX", "BATS", "EDGX", "XNYS", "BATY", "EDGA", "XBOS", "XPHL", "IEXG", "MEMX", "XCHI", "XADF"]
QUOTE_MARKET_WEIGHTS = np.array([22, 16, 13, 12, 10, 6, 5, 4, 4, 3, 3, 2, 0], dtype=float)
TRADE_MARKET_WEIGHTS = np.array([14, 10, 8, 8, 7, 4, 3, 3, 3, 2, 2, 1, 35], dtype=float)  # XADF: off-exchange
DAY_START, DAY_END = 4 * 3600, 20 * 3600  # New York seconds; 04:00 EDT is 08:00Z
OPEN, CLOSE = int(9.5 * 3600), 16 * 3600


def hashes(seed, stream, count):
    """`count` uniform uint64 values: splitmix64 of the row number."""
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64((seed * 1_000_003 + stream * 7_919) & 0xFFFFFFFFFFFFFFFF)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def unit(values):
    return (values >> np.uint64(11)).astype(np.float64) * 2.0**-53


def pick(values, weights):
    """Index by weight, one per hash."""
    cumulative = np.cumsum(weights) / np.sum(weights)
    return np.minimum(np.searchsorted(cumulative, unit(values), side="right"), len(weights) - 1)


def symbol_codes():
    """3,000 distinct codes of 1 to 5 letters, in rank order."""
    codes, n = [], 0
    while len(codes) < SYMBOLS:
        value, text = n * 7 + 1, ""
        while value:
            value, digit = divmod(value, 26)
            text += chr(65 + digit)
        codes.append(text)
        n += 1
    assert len(set(codes)) == SYMBOLS
    return np.array(codes)


def second_weights(seed):
    seconds = np.arange(DAY_START, DAY_END)
    since = seconds - OPEN
    inside = (since >= 0) & (seconds < CLOSE)
    weights = np.where(inside, 1 + 2.2 * np.exp(-np.maximum(since, 0) / 1200.0) + 1.6 * np.exp(-(CLOSE - OPEN - np.maximum(since, 0)) / 900.0), 0.06)
    bursts = unit(hashes(seed, 90, len(seconds))) < 0.05
    return np.where(bursts & inside, weights * 10, weights)


def day_rows(base, date_index, seed):
    """Rows of a day: +-15 %, and 30 % more on the last (options expiry)."""
    factor = 0.85 + 0.30 * float(unit(hashes(seed, 91 + date_index, 1))[0])
    return int(base * factor * (1.3 if date_index == len(DATES) - 1 else 1.0))


def common_columns(count, date, seed, codes, market_weights):
    """Key columns of both tables, sorted by symbol and time; also the symbol ranks and the first row of each symbol's run."""
    weights = np.arange(1, SYMBOLS + 1, dtype=float) ** -0.95
    rank = pick(hashes(seed, 1, count), weights)
    second = pick(hashes(seed, 2, count), second_weights(seed))
    micros = hashes(seed, 3, count) % np.uint64(1_000_000)
    midnight = int(datetime.datetime.fromisoformat(date).replace(tzinfo=datetime.timezone.utc).timestamp())
    stamp = (midnight + 4 * 3600 + DAY_START + second) * 1_000_000 + micros.astype(np.int64)  # EDT = UTC-4
    alphabetical = np.argsort(np.argsort(codes))[rank]
    order = np.lexsort((stamp, alphabetical))
    rank, stamp = rank[order], stamp[order]
    tail = unit(hashes(seed, 4, count)) < 0.01
    delay = 120 + hashes(seed, 5, count) % np.uint64(400) + np.where(tail, hashes(seed, 6, count) % np.uint64(50_000), 0).astype(np.uint64)
    server = 20 + hashes(seed, 7, count) % np.uint64(60)
    status = np.where(unit(hashes(seed, 8, count)) < 0.999, 17, np.where(unit(hashes(seed, 9, count)) < 0.5, 2, 18)).astype(np.int16)
    market = pick(hashes(seed, 10, count), market_weights)
    utc = pa.timestamp("us", tz="UTC")
    columns = {
        "LocalCodeStr": pa.DictionaryArray.from_arrays(pa.array(rank.astype(np.int32)), pa.array(codes.tolist())),
        "Timestamp": pa.array(stamp, type=utc),
        "MarketTimestamp": pa.array(stamp - delay.astype(np.int64), type=utc),
        "ServerTimestamp": pa.array(stamp - server.astype(np.int64), type=utc),
        "InternalCode": pa.array((1000 + rank * 16 + market).astype(np.int32)),
        "LocalCodeMarketId": pa.DictionaryArray.from_arrays(pa.array(market.astype(np.int32)), pa.array(MARKETS)),
        "TradingStatus": pa.array(status),
    }
    starts = np.flatnonzero(np.r_[True, rank[1:] != rank[:-1]])
    return columns, rank, starts


def run_starts(count, starts):
    """For each row, the index of the first row of its symbol."""
    first = np.zeros(count, dtype=np.int64)
    first[starts] = starts
    return np.maximum.accumulate(first)


def walk(count, rank, starts, seed):
    """Mid prices in ticks: a random walk per symbol from its own start price."""
    total = np.cumsum((hashes(seed, 20, count) % np.uint64(3)).astype(np.int64) - 1)
    start_ticks = 500 + (rank.astype(np.int64) * 2_654_435_761 % 50_000)
    return np.maximum(start_ticks + total - total[run_starts(count, starts)], 10)


def quotes(count, date, seed, codes):
    columns, rank, starts = common_columns(count, date, seed, codes, QUOTE_MARKET_WEIGHTS)
    mid = walk(count, rank, starts, seed)
    spread = 1 + hashes(seed, 21, count) % np.uint64(4)
    for side, sign, stream in (("Bid", -1, 30), ("Ask", 1, 40)):
        price = mid + (0 if sign < 0 else spread.astype(np.int64))
        columns[f"{side}Price"] = pa.array(price / 100.0)
        size = 1 + np.floor(np.log(1 - unit(hashes(seed, stream, count))) / np.log(0.6))
        columns[f"{side}Size"] = pa.array((np.minimum(size, 200) * 100).astype(np.int32))
        columns[f"{side}Orders"] = pa.array((1 + hashes(seed, stream + 1, count) % np.uint64(6)).astype(np.int16))
    return pa.table(columns)


def trades(count, date, seed, codes):
    columns, rank, starts = common_columns(count, date, seed, codes, TRADE_MARKET_WEIGHTS)
    market = pick(hashes(seed, 50, count), TRADE_MARKET_WEIGHTS)
    size = np.where(unit(hashes(seed, 51, count)) < 0.6, (1 + hashes(seed, 52, count) % np.uint64(10)) * np.uint64(100), 1 + hashes(seed, 53, count) % np.uint64(99)).astype(np.int64)
    total = np.cumsum(size)
    first = run_starts(count, starts)
    columns["MarketId"] = pa.DictionaryArray.from_arrays(pa.array(market.astype(np.int32)), pa.array(MARKETS))
    columns["Price"] = pa.array(walk(count, rank, starts, seed) / 100.0)
    columns["Size"] = pa.array(size)
    columns["TradeId"] = pa.array(np.arange(1, count + 1, dtype=np.int64))
    columns["CumVolume"] = pa.array(total - total[first] + size[first])
    return pa.table(columns)


def generate(root, quote_rows=1_000_000, trade_rows=100_000, seed=20220513, dates=None):
    """Writes both tables below `root`; returns (files, bytes)."""
    codes = symbol_codes()
    files = size = 0
    for name, base, make, offset in (("EquityQuoteL1", quote_rows, quotes, 0), ("EquityTradeL1", trade_rows, trades, 500)):
        for index, date in enumerate(dates or DATES):
            folder = pathlib.Path(root) / name / f"Date={date}"
            folder.mkdir(parents=True, exist_ok=True)
            table = make(day_rows(base, index, seed), date, seed + index + offset, codes)
            path = folder / "part-0000.parquet"
            pq.write_table(table, path, compression="snappy", row_group_size=1_000_000, data_page_size=1 << 20, write_page_index=True)
            files += 1
            size += path.stat().st_size
    return files, size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("--quotes", type=int, default=1_000_000, help="quote rows per date")
    parser.add_argument("--trades", type=int, default=100_000, help="trade rows per date")
    parser.add_argument("--seed", type=int, default=20220513)
    options = parser.parse_args()
    files, size = generate(options.root, options.quotes, options.trades, options.seed)
    print(f"{files} files, {size / 1e6:.0f} MB below {options.root}")


if __name__ == "__main__":
    main()
