"""What a read costs in requests: asserted on what the server counted, never on time."""
import os
import pathlib
import subprocess
import time

import pytest


def put_tree(sim, folders=200, files=20):
    """4,220 entries: 20 top folders with 10 each, 20 files in every one of the 200."""
    from concurrent.futures import ThreadPoolExecutor

    client = sim.client()
    keys = [f"tree/d{folder // 10:02}/e{folder % 10}/f{name:02}" for folder in range(folders) for name in range(files)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: client.put_object(Bucket="tables", Key=key, Body=b"x" * 4096), keys))
    return keys


def test_reading_512_mib_once(sim, mounts, payload):
    size = 512 << 20
    piece = payload(1 << 20)
    sim.client().put_object(Bucket="tables", Key="big", Body=piece * 512)
    mount = mounts("s3://tables", endpoint=sim.url)
    sim.options(total="300MB/s")  # a disk that is slower than the store makes GETs smaller: not what is counted here
    sim.reset()
    with open(mount / "big", "rb", buffering=0) as f:
        total = 0
        while chunk := f.read(1 << 20):
            assert chunk == piece
            total += len(chunk)
    assert total == size
    stats = sim.stats()
    assert stats["requests"]["GET"] <= 70
    fetched = sum(r["length"] if isinstance(r, dict) else r[2] for r in stats["ranges"])
    assert fetched <= 1.02 * size
    sim.reset()
    subprocess.run(["cmp", str(mount / "big"), str(mount / "big")], check=True)
    assert sim.requests("GET") == 0


def test_a_walk_costs_few_lists(sim, mounts):
    keys = put_tree(sim)
    mount = mounts("s3://tables", endpoint=sim.url)
    sim.reset()
    found = subprocess.run(["find", str(mount.path)], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len([f for f in found if pathlib.Path(f).name.startswith("f")]) == len(keys)
    stats = sim.stats()["requests"]
    assert stats.get("LIST", 0) <= 8, stats
    assert stats.get("HEAD", 0) == 0
    assert stats.get("GET", 0) == 0
    sim.reset()
    subprocess.run(["find", str(mount.path), "-size", "+1"], capture_output=True, check=True)
    assert sim.stats()["requests"].get("LIST", 0) == 0, "known names are not asked again within the TTL"


def test_a_deep_file_in_a_small_subtree_costs_one_round_of_lists(sim, mounts):
    sim.client().put_object(Bucket="tables", Key="one/two/three/four/file", Body=b"deep")
    mount = mounts("s3://tables", endpoint=sim.url)
    sim.reset()
    assert (mount / "one/two/three/four/file").read_bytes() == b"deep"
    stats = sim.stats()["requests"]
    assert stats["LIST"] <= 3, stats
    assert stats["GET"] == 1, stats


def test_wide_folder_lists_each_page_about_once(sim, mounts):
    sim.bulk("tables", "wide/name-", 20000)
    mount = mounts("s3://tables", endpoint=sim.url)
    sim.reset()
    assert len(os.listdir(mount / "wide")) == 20000
    assert sim.requests("LIST") <= 35
    sim.reset()
    assert len(os.listdir(mount / "wide")) == 20000
    assert sim.requests("LIST") == 0


def test_absent_names_are_answered_by_a_listing(sim, mounts):
    for i in range(50):
        sim.client().put_object(Bucket="tables", Key=f"d/f{i}", Body=b"x")
    mount = mounts("s3://tables", endpoint=sim.url)
    os.listdir(mount / "d")
    sim.reset()
    for i in range(100):
        assert not (mount / f"d/none{i}").exists()
    assert sim.stats()["requests"].get("LIST", 0) == 0


@pytest.mark.parametrize("readers", [8])
def test_parallel_readers_share_one_fetch(sim, mounts, payload, readers):
    body = payload(40 << 20)
    sim.client().put_object(Bucket="tables", Key="shared", Body=body)
    sim.options(first_byte_ms=20)
    mount = mounts("s3://tables", endpoint=sim.url)
    sim.reset()
    jobs = [subprocess.Popen(["md5sum", str(mount / "shared")], stdout=subprocess.PIPE, text=True) for _ in range(readers)]
    sums = {job.communicate()[0].split()[0] for job in jobs}
    import hashlib
    assert sums == {hashlib.md5(body).hexdigest()}
    fetched = sum(r["length"] if isinstance(r, dict) else r[2] for r in sim.stats()["ranges"])
    assert fetched <= 1.02 * len(body)


def test_unchanged_objects_are_not_fetched_again_after_the_ttl(sim, mounts, payload):
    """An expired name costs one listing, not the bytes."""
    import time

    sim.client().put_object(Bucket="tables", Key="d/f", Body=payload(5 << 20))
    mount = mounts("s3://tables", "--ttl", "1s", endpoint=sim.url)
    assert (mount / "d/f").read_bytes() == payload(5 << 20)
    inode = os.stat(mount / "d/f").st_ino
    time.sleep(1.3)
    sim.reset()
    assert (mount / "d/f").read_bytes() == payload(5 << 20)
    stats = sim.stats()["requests"]
    assert stats.get("GET", 0) == 0, stats
    assert 1 <= stats.get("LIST", 0) <= 3, stats
    assert os.stat(mount / "d/f").st_ino == inode


def test_a_store_that_lists_out_of_order_loses_no_name(weed, mounts):
    """SeaweedFS tells of the folder `a/` before `a-1`: more than a page of such names once made the rest of them vanish."""
    from concurrent.futures import ThreadPoolExecutor

    client = weed.client()
    client.create_bucket(Bucket="disorder")
    names = ["a/c"] + [f"a-{n:04}" for n in range(1200)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: client.put_object(Bucket="disorder", Key=f"d/{name}", Body=b"x"), names))
    mount = mounts("s3://disorder", "--ttl", "1s", endpoint=weed.url)
    want = sorted(["a"] + names[1:])
    assert sorted(os.listdir(mount / "d")) == want
    client.delete_object(Bucket="disorder", Key="d/a-0700")
    time.sleep(1.1)
    assert sorted(os.listdir(mount / "d")) == [name for name in want if name != "a-0700"]
    assert os.listdir(mount / "d/a") == ["c"]


def test_looking_at_all_of_a_big_folder_costs_its_pages(sim, mounts):
    """After the TTL each name of a folder of more than 20 pages was asked for by a request of its own."""
    sim.bulk("tables", "d/n", 21_000)
    mount = mounts("s3://tables", "--ttl", "4s", endpoint=sim.url)
    names = sorted(os.listdir(mount / "d"))
    assert len(names) == 21_000
    time.sleep(4.2)
    sim.reset()
    began = time.monotonic()
    for name in names[:3000]:
        os.stat(mount / "d" / name)
    if time.monotonic() - began < 4:  # or they have expired once more
        assert sim.stats()["requests"]["LIST"] <= 120
