"""Programs that people run on tables, on a real mount of SeaweedFS and of a folder: each finds what it finds on the local copy."""
import hashlib
import mmap
import os
import pathlib
import shutil
import sqlite3
import subprocess
import zipfile

import duckdb
import harness
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

ODD_NAMES = ["with space/a b  c.csv", "unicode/Größe/日本 語.csv", "unicode/cafe\u0301.csv", "unicode/caf\u00e9.csv", "k=v/x=1=2.csv",
             "pct%2Fname/a%20b%.csv",
             "plus+plus/c++.csv", "amp&semi;/q?x#y.csv", "quote'\"/$HOME `id`.csv", "paren(1)/[a]{b}*.csv", "-dash/--help.csv",
             "@at:colon,comma!/~tilde^.csv",
             " lead/trail .csv", "ta\tb/b\tab.csv", "dots.../..a.csv", ".hidden/.x.csv", "<xml>/&amp;.csv", "long/" + "n" * 200 + ".csv"]
# SeaweedFS takes a backslash for a slash; flat keys keep all of these.
ODDER_NAMES = ["back\\slash/a\\b", "new\nline/a\nb", "return\r/\r", "bell\x07/\x01\x1f", "emoji/\U0001f9ca",
               "nul-like/%00", "sur/\ufffd\uffff", "\x7f/del\x7f"]
EXCHANGES = ["NYSE/ARCA", "A+B", "50% off", "München x", "a=b"]
ROWS = 40_000


def make_table(seed):
    random = np.random.default_rng(seed)
    return pa.table({
        "id": pa.array(np.arange(ROWS) + seed * ROWS),
        "symbol": pa.array([f"S{n}" for n in random.integers(0, 500, ROWS)]).dictionary_encode(),
        "exchange": pa.array([EXCHANGES[n] for n in random.integers(0, len(EXCHANGES), ROWS)]),
        "price": pa.array(np.round(random.uniform(1, 500, ROWS), 2)),
        "when": pa.array(random.integers(1_650_000_000_000_000, 1_660_000_000_000_000, ROWS), type=pa.timestamp("us", tz="UTC")),
        "note": pa.array([None if n % 7 == 0 else f"note {n}" for n in random.integers(0, 10_000, ROWS)]),
    })


def build_tables(root):
    table = make_table(1)
    # Partition values are encoded by the writer: folders such as exchange=NYSE%2FARCA, exchange=50%25%20off.
    by_exchange = ds.partitioning(pa.schema([("exchange", pa.string())]), flavor="hive")
    ds.write_dataset(table, root / "part", format="parquet", partitioning=by_exchange)
    (root / "one file").mkdir()
    pq.write_table(table, root / "one file/table.parquet", row_group_size=5_000, write_page_index=True, compression="zstd")
    feather.write_feather(table, root / "table.arrow", compression="uncompressed")
    frame = make_table(2).to_pandas()
    frame.to_csv(root / "table + header.csv", index=False)
    frame.to_csv(root / "table.csv.gz", index=False)
    np.save(root / "array.npy", np.arange(300_000, dtype=np.int64))
    with duckdb.connect(str(root / "tables.duckdb")) as db:
        db.execute("create table t as select range as n, 'row ' || range as label from range(50000)")
    with sqlite3.connect(root / "tables.sqlite") as db:
        db.execute("create table t (n integer primary key, label text)")
        db.executemany("insert into t values (?, ?)", ((n, f"row {n}") for n in range(20_000)))
    db.close()
    with zipfile.ZipFile(root / "archive.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(50):
            archive.writestr(f"member {n}", f"{n}\n" * 1000)


def build_names(root):
    for n, name in enumerate(ODD_NAMES):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"n,name\n{n},needle {n}\n" * (n * 300 + 1))
    (root / "empty file").touch()
    (root / "empty folder").mkdir()
    # Around the sizes where the cache changes its ways: a block, an object without a sidecar, a page, a read of the kernel, a fetch.
    for size in (1, 4095, 4096, 4097, 65_536, 65_537, (1 << 20) - 1, (1 << 20) + 1, (8 << 20) + 5):
        (root / f"size {size}").write_bytes(np.random.default_rng(size).bytes(size))


class Place:
    """The local copy and the mount of the same tree."""

    def __init__(self, local, mount):
        self.local = local
        self.mount = mount.path
        self.daemon = mount

    def both(self, action, *arguments):
        return action(self.local, *arguments), action(self.mount, *arguments)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("clients") / "tree"
    for name, build in (("tables", build_tables), ("names", build_names)):
        (root / name).mkdir(parents=True)
        build(root / name)
    return root


@pytest.fixture(scope="module", params=["seaweedfs", "file"])
def place(request, tree, thermo):
    if request.param == "file":
        store, endpoint = f"file://{tree}", None
    else:
        weed = request.getfixturevalue("weed")
        client = weed.client()
        client.create_bucket(Bucket="clients")
        for path in sorted(p for p in tree.rglob("*") if p.is_file()):
            client.put_object(Bucket="clients", Key=str(path.relative_to(tree)), Body=path.read_bytes())
        client.put_object(Bucket="clients", Key="names/empty folder/")
        store, endpoint = "s3://clients", weed.url
    with harness.Mount(thermo, store, endpoint=endpoint) as mount:
        yield Place(tree, mount)


@pytest.fixture(autouse=True)
def cold(request):
    """Each test reads from the store: nothing in the cache, nothing in the kernel."""
    if "place" in request.fixturenames:
        place = request.getfixturevalue("place")
        place.daemon.run("free", place.mount)
        for path in (p for p in place.mount.rglob("*") if p.is_file()):
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def shell(command, folder):
    """Standard output of a pipeline run in `folder`; nothing may fail or be complained about."""
    result = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, capture_output=True, timeout=120 * harness.SLOW,
                            stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
    assert result.returncode == 0 and not result.stderr, f"{command}: {result.returncode} {result.stderr[-1500:]!r}"
    return result.stdout


@pytest.mark.parametrize("command", [
    "find . -type f -print0 | sort -z | xargs -0 md5sum",
    "find . -type f -printf '%p %s\\n' | sort",
    "find . -type d | sort",
    "find . -name '*%2F*' -o -name '*+*' -o -name '* *' | sort",
    "ls -RAQ --quoting-style=c",
    "grep -rc needle . | sort",
    "grep -rlZ 'needle 1[0-9]' . | sort -z | tr '\\0' '\\n'",
    "find . -type f -print0 | sort -z | xargs -0 wc -lc",
    "tar -cf - --sort=name --mtime=@0 --owner=0 --group=0 --mode=0644 . | sha256sum",
    "for n in 1 4097 65537; do tail -c $n 'names/size 8388613' | md5sum; head -c $n 'names/size 8388613' | md5sum; done",
    "dd if='names/size 8388613' bs=3333 skip=77 count=1000 status=none | md5sum",
    "dd if='names/size 8388613' bs=4096 iflag=direct status=none | md5sum",
    "zcat tables/table.csv.gz | sort | md5sum",
    "sort -t, -k4 -n 'tables/table + header.csv' | md5sum",
    "find . -type f -print0 | xargs -0 du -b | sort",
])
def test_command(place, command):
    local, mounted = place.both(lambda root: shell(command, root))
    assert local, "the command shows something"
    assert mounted == local


@pytest.mark.parametrize("copy", ["cp -r {0}/. {1}", "cp -a {0}/. {1}", "tar -C {0} -cf - . | tar -C {1} -xf -"])
def test_a_copy_is_the_tree(place, copy, tmp_path):
    target = tmp_path / "copy"
    target.mkdir()
    shell(copy.format(place.mount, target), "/")
    assert shell(f"diff -r {place.local} {target} && echo same", "/") == b"same\n"


def test_odder_names_of_flat_keys(sim, mounts, tmp_path):
    client = sim.client()
    for n, name in enumerate(ODDER_NAMES):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(f"content {n}")
        client.put_object(Bucket="tables", Key=name, Body=f"content {n}".encode())
    mount = mounts("s3://tables", endpoint=sim.url)
    for command in ("find . -print0 | sort -z", "find . -type f -print0 | sort -z | xargs -0 md5sum"):
        assert shell(command, mount.path) == shell(command, tmp_path)
    assert shell(f"diff -r {tmp_path} {mount.path} && echo same", "/") == b"same\n"


def test_diff_finds_no_difference(place):
    assert shell(f"diff -r {place.local} {place.mount} && echo same", "/") == b"same\n"


def test_cmp_by_every_way_to_read(place):
    """read, pread, readv, mmap, sendfile: the same bytes."""
    name = f"names/size {(8 << 20) + 5}"
    want = (place.local / name).read_bytes()
    fd = os.open(place.mount / name, os.O_RDONLY)
    try:
        assert os.pread(fd, len(want) + 10, 0) == want
        assert os.pread(fd, 100, len(want)) == b""
        parts = [bytearray(1000), bytearray(70_000), bytearray(1)]
        assert os.preadv(fd, parts, 12_345) == 71_001
        assert b"".join(parts) == want[12_345:12_345 + 71_001]
        with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as view:
            assert view[:] == want
        with mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as view:
            view[5] = 1  # a private copy may be changed
            assert view[6:] == want[6:]
        assert os.lseek(fd, 0, os.SEEK_DATA) == 0
        assert os.lseek(fd, 0, os.SEEK_HOLE) == len(want)
    finally:
        os.close(fd)


def files_of(root):
    return sorted(str(p.relative_to(root)) for p in pathlib.Path(root).rglob("*") if p.is_file())


def test_python_walks_and_copies(place, tmp_path):
    local, mounted = place.both(files_of)
    assert mounted == local
    shutil.copytree(place.mount / "names", tmp_path / "copy")  # sendfile
    assert files_of(tmp_path / "copy") == files_of(place.local / "names")
    for name in files_of(tmp_path / "copy"):
        assert (tmp_path / "copy" / name).read_bytes() == (place.local / "names" / name).read_bytes(), name


DUCKDB_QUERIES = {
    "one file": "select count(*), sum(id), min(price), max(\"when\"), count(note) from '{0}/one file/*.parquet'",
    "one symbol": "select * from '{0}/one file/table.parquet' where symbol = 'S77' order by id",
    "partitions": "select exchange, count(*), sum(price)::decimal(18, 2) "
                  "from read_parquet('{0}/part/*/*.parquet', hive_partitioning = true) group by 1 order by 1",
    "one partition": "select count(*), sum(id) from read_parquet('{0}/part/*/*.parquet', hive_partitioning = true) where exchange = 'NYSE/ARCA'",
    "deep glob": "select count(*) from read_parquet('{0}/**/*.parquet', union_by_name = true, hive_partitioning = false)",
    "footer": "select row_group_id, path_in_schema, num_values, stats_min, total_compressed_size "
              "from parquet_metadata('{0}/one file/table.parquet') order by all",
    "csv": "select count(*), sum(id), count(note), min(\"when\") from read_csv('{0}/table + header.csv')",
    "csv.gz": "select count(*), sum(id) from read_csv('{0}/table.csv.gz')",
    "odd csv": "select name, count(*) from read_csv('{0}/../names/**/*.csv', union_by_name = true) group by 1 order by 1",
}


@pytest.mark.parametrize("name", DUCKDB_QUERIES)
def test_duckdb(place, name):
    def run(root):
        with duckdb.connect() as db:
            db.execute("set enable_external_file_cache = false; set TimeZone = 'UTC'")
            return db.execute(DUCKDB_QUERIES[name].format(root / "tables")).fetchall()

    local, mounted = place.both(run)
    assert local and mounted == local


def test_database_files_open_read_only(place):
    def ducks(root):
        with duckdb.connect(str(root / "tables/tables.duckdb"), read_only=True) as db:
            return db.execute("select count(*), sum(n), max(label) from t where n % 3 = 1").fetchall()

    def lite(root):
        db = sqlite3.connect(f"file:{root}/tables/tables.sqlite?mode=ro", uri=True)
        try:
            return db.execute("select count(*), sum(n), max(label) from t where n % 3 = 1").fetchall()
        finally:
            db.close()

    for read in (ducks, lite):
        local, mounted = place.both(read)
        assert mounted == local


@pytest.mark.parametrize("way", ["whole", "pre_buffer", "memory_map", "row_groups", "columns"])
def test_pyarrow_parquet(place, way):
    def read(root):
        path = root / "tables/one file/table.parquet"
        if way == "row_groups":
            file = pq.ParquetFile(path)
            return pa.concat_tables([file.read_row_group(n) for n in (7, 0, 3)])
        if way == "columns":
            return pq.read_table(path, columns=["price"], filters=[("id", ">=", ROWS + 30_000)])
        return pq.read_table(path, memory_map=way == "memory_map", pre_buffer=way == "pre_buffer")

    local, mounted = place.both(read)
    assert local.num_rows > 0 and mounted.equals(local)


def test_pyarrow_dataset(place):
    def read(root):
        data = ds.dataset(root / "tables/part", format="parquet", partitioning="hive")
        rows = data.to_table(filter=(pc.field("exchange") == "50% off") & (pc.field("price") > 250))
        return rows.sort_by("id"), data.count_rows(), sorted(str(pathlib.Path(f).relative_to(root)) for f in data.files)

    (local, count, files), (mounted, mounted_count, mounted_files) = place.both(read)
    assert local.num_rows > 0 and mounted.equals(local)
    assert (mounted_count, mounted_files) == (count, files)
    assert count == ROWS and len(files) == len(EXCHANGES)


def test_pyarrow_other_formats(place):
    for read in (lambda root: feather.read_table(root / "tables/table.arrow", memory_map=True),
                 lambda root: feather.read_table(root / "tables/table.arrow", memory_map=False),
                 lambda root: pyarrow.csv.read_csv(root / "tables/table + header.csv")):
        local, mounted = place.both(read)
        assert local.num_rows == ROWS and mounted.equals(local)


@pytest.mark.parametrize("name", ["one file/table.parquet", "part", "table + header.csv", "table.csv.gz"])
def test_pandas(place, name):
    def read(root):
        path = root / "tables" / name
        return pd.read_csv(path) if "csv" in name else pd.read_parquet(path)

    local, mounted = place.both(read)
    assert len(local) == ROWS
    pd.testing.assert_frame_equal(mounted, local)


def test_numpy_and_zip(place):
    local, mounted = place.both(lambda root: np.load(root / "tables/array.npy", mmap_mode="r"))
    assert np.array_equal(local, mounted)

    def members(root):
        with zipfile.ZipFile(root / "tables/archive.zip") as archive:
            assert archive.testzip() is None
            return {name: hashlib.md5(archive.read(name)).hexdigest() for name in archive.namelist()}

    local, mounted = place.both(members)
    assert len(local) == 50 and mounted == local


def test_all_again_from_the_cache_after_a_restart(place):
    """Still the same after the kernel forgot it and the daemon ended; nothing is fetched twice."""
    sums = "find . -type f -print0 | sort -z | xargs -0 sha256sum"
    local = shell(sums, place.local)
    assert shell(sums, place.mount) == local
    place.daemon.remount()
    harness.drop_page_cache()
    assert shell(sums, place.mount) == local
    assert place.daemon.served("warm") > 0
    assert place.daemon.served("cold") == 0
