"""One embedded Deephaven server that runs Query 1 and 2 over several copies of the market data and keeps each result.

Run in a process of its own: a JVM can be started once per process and does not end by itself. Takes a JSON plan as its only argument:
{"port", "work", "heap", "steps": [...]}; a step is {"name", "table", "quotes", "trades"} (opens tables; their folders may lie behind links),
{"name", "query": "q1"|"q2", "table": NAME} (result in WORK/<name>.parquet) or {"forget": seconds} (waits, then empties the kernel's caches).
Prints one JSON line: seconds by step.
"""
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

KEYS = {"q1": ["Date", "LocalCodeStr", "Timestamp"], "q2": ["Date", "LocalCodeStr", "LocalCodeMarketId"]}
STAMPS_AND_TEXT = ["MarketTimestamp", "ServerTimestamp", "InternalCode", "LocalCodeMarketId", "TradingStatus"]


def start(plan):
    from deephaven_server import Server

    work = plan["work"]
    arguments = [f"-Xmx{plan['heap']}", "-Dhttp.host=127.0.0.1", "-DAuthHandlers=io.deephaven.auth.AnonymousAuthenticationHandler",
                 "-Dprocess.info.system-info.enabled=false", "-DQueryTable.memoizeResults=false",
                 # Few open files: column files are closed and opened again all day, and each time (st_dev, st_ino) must be what it was.
                 "-DTrackedFileHandleFactory.maxOpenFiles=4", f"-Duser.home={work}"]
    arguments += [f"-Ddeephaven.{kind}Dir={work}/{kind}" for kind in ("cache", "config", "data")]
    Server(port=plan["port"], jvm_args=arguments).start()


def open_table(place):
    """A key=value partitioned table, or one of the nested layout <root>/<partition>/<date>/<table>/table.parquet ("nested:ROOT:TABLE")."""
    from deephaven import parquet
    from deephaven.table import Table

    if not place.startswith("nested:"):
        return parquet.read(place, file_layout=parquet.ParquetFileLayout.KV_PARTITIONED)
    import jpy

    _, root, name = place.split(":")
    file = jpy.get_type("java.io.File")
    instructions = jpy.get_type("io.deephaven.parquet.table.ParquetInstructions").EMPTY
    layout = jpy.get_type("io.deephaven.parquet.table.layout.DeephavenNestedPartitionLayout")
    finder = layout.forParquet(file(root), name, "Date", None, instructions)
    table = Table(jpy.get_type("io.deephaven.parquet.table.ParquetTools").readTable(finder, instructions))
    return table.drop_columns("__INTERNAL_PARTITION__")


def bars(table, without):
    return table.update_view("Timestamp = lowerBin(Timestamp, 60 * SECOND)").drop_columns(without).avg_by(KEYS["q1"])


def run_query(name, quotes, trades):
    from deephaven.experimental.outer_joins import full_outer_join

    if name == "q1":
        result = full_outer_join(bars(trades, [*STAMPS_AND_TEXT, "MarketId"]), bars(quotes, STAMPS_AND_TEXT), on=KEYS["q1"])
    else:
        result = quotes.view([*KEYS["q2"], "BidSize"]).sum_by(KEYS["q2"])
    return result.select()


def main():
    plan = json.loads(sys.argv[1])
    started = time.monotonic()
    start(plan)
    import pyarrow.parquet as pq
    from deephaven import arrow

    tables, seconds = {}, {"start": round(time.monotonic() - started, 3)}
    for step in plan["steps"]:
        if "forget" in step:
            time.sleep(step["forget"])
            harness.drop_page_cache()
            continue
        started = time.monotonic()
        if "query" not in step:
            tables[step["table"]] = (open_table(step["quotes"]), open_table(step["trades"]))
            seconds[f"open {step['table']}"] = round(time.monotonic() - started, 3)
            continue
        result = run_query(step["query"], *tables[step["table"]])
        seconds[step["name"]] = round(time.monotonic() - started, 3)
        kept = arrow.to_arrow(result).replace_schema_metadata(None)
        pq.write_table(kept.sort_by([(key, "ascending") for key in KEYS[step["query"]]]), f"{plan['work']}/{step['name']}.parquet")
    print(json.dumps(seconds), flush=True)
    os._exit(0)  # the JVM's threads would keep the process


if __name__ == "__main__":
    main()
