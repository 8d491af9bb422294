"""The commands as a user types them: help, JSON, daemon and mounts, foreground, log, metrics."""
import json
import os
import pathlib
import pty
import re
import signal
import socket
import stat
import subprocess
import threading
import time
import tomllib
import urllib.request

import harness
import pytest

LINES = {
    "fuse": re.compile(r"^\S+ I fuse id=\d+ op=[A-Z_]+ mount=\S+ path='[^\n]*' node=\d+( \S+=[^\n]*?)? uid=\d+ pid=\d+ bytes=\d+ ms=\d+\.\d{3} "
                       r"by=[a-z]+ result=\d+$"),
    "s3": re.compile(r"^\S+ I s3 id=\d+ op=[a-z_]+ store=\S+ path='[^\n]*' range=\d+\+\d+ bytes=\d+ ms=\d+\.\d{3} result=\S[^\n]*$"),
}


def start_foreground(desk, store, *words, **named):
    process = desk.start("mount", store, desk.mnt, "--cache", desk.cache, "-f", *words, **named)
    harness.wait_for(lambda: harness.is_mounted(desk.mnt) and desk.run("status", desk.mnt).returncode == 0 or process.poll() is not None, 15,
                     "the mount in the foreground")
    assert process.poll() is None, process.communicate()
    return process


# Help and options

def test_version_and_grouped_help(desk):
    for word in ("-v", "--version"):
        assert re.fullmatch(r"thermo \d+\.\d+\.\d+ \([0-9a-f]{7,}(-dirty)?\)\n", desk.done(word).stdout)
    overview = desk.done("--help").stdout
    assert desk.done().stdout == overview
    groups = ["Mounts:", "Seeing:", "Cache:", "Testing:"]
    assert [line for line in overview.splitlines() if line in groups] == groups
    for command in ("mount", "umount", "daemon", "status", "stat", "ls", "load", "free", "debug", "config", "s3sim"):
        assert re.search(rf"^  {command} +\w", overview, re.M), command
        assert f"Usage: thermo {command}" in desk.done(command, "--help").stdout
    page = desk.done("mount", "--help").stdout
    places = [page.index(f"\n{group}:") for group in ("Store", "Cache and memory", "Mount", "Log and metrics")]
    assert places == sorted(places)
    assert max(len(line) for line in page.splitlines()) < 200


def test_every_key_of_the_config_is_a_flag(desk):
    """`thermo config` prints all options with where they came from; flags win over the file; what it prints can be read back."""
    (desk.folder / "c.toml").write_text('[mount]\nttl = "5m"\nuid = "7"\noptions = ["ro", "noexec"]\n[log]\ndebug-s3 = true\n[store]\nconnections = 9\n')
    page = desk.done("config", "--config", "c.toml", "--ttl", "9s", "--cache", "/x").stdout
    values = tomllib.loads(page)
    assert values["mount"]["ttl"] == "9s" and values["mount"]["uid"] == "7" and values["mount"]["options"] == "ro,noexec"
    assert values["log"]["debug-s3"] is True and values["store"]["connections"] == 9 and values["cache"]["path"] == "/x"
    assert re.search(r'^ttl = "9s"  # --ttl$', page, re.M) and re.search(r'^uid = "7"  # c.toml:3: mount.uid$', page, re.M)
    keys = re.findall(r"^(?:# )?([a-z0-9-]+) = ", page, re.M)
    assert len(keys) >= 25
    flags = desk.done("mount", "--help").stdout
    renamed = {"path": "cache", "size": "cache-size", "target": "log", "level": "log-level"}
    for key in keys:
        assert re.search(rf"(--{renamed.get(key, key)}\b|  -o )", flags), key
    (desk.folder / "again.toml").write_text(page)
    assert tomllib.loads(desk.done("config", "--config", "again.toml").stdout) == values


def test_the_users_own_config_file_is_read(desk, tmp_path):
    (tmp_path / "f").write_text("x")
    place = desk.home / ".config/thermo/thermo.toml"
    place.parent.mkdir(parents=True)
    place.write_text(f'[cache]\npath = "{desk.cache}"\nsize = "64MiB"\n[mount]\nfile-mode = "0440"\n')
    desk.done("mount", f"file://{tmp_path}", desk.mnt)
    assert stat.S_IMODE((desk.mnt / "f").stat().st_mode) == 0o440
    status = desk.json("status", desk.mnt)
    assert status["cache"] == status["cache"] | {"folder": str(desk.cache), "limit": 64 << 20}


MISTAKES = [
    (["statsu"], "unknown command 'statsu'; did you mean 'status'?"),
    (["frobnicate"], "unknown command 'frobnicate'; `thermo --help` lists them"),
    (["mout", "s3://tables", "mnt"], "unknown command 'mout'; did you mean 'mount'?"),
    (["mount", "s3://tables", "mnt", "--endpiont", "http://x"], "'--endpiont'; did you mean '--endpoint'?"),
    (["mount", "s3://tables", "mnt", "--endpoint"], "--endpoint needs a value"),
    (["mount", "s3://tables", "mnt", "--endpoint", "--cache", "/x"], "--endpoint needs a value"),
    (["mount", "s3://tables"], "MOUNTPOINT is required"),
    (["status", "--jsno"], "'--jsno'; did you mean '--json'?"),
    (["load"], "PATH is required"),
    (["mount", "tables", "mnt"], "for a bucket write s3://tables"),
    (["mount", "/srv/x", "mnt"], "for a folder write file:///srv/x"),
    (["mount", "file://srv/x", "mnt"], "three slashes"),
    (["mount", "s3a://tables", "mnt"], "write s3://tables"),
    (["mount", "https://host/tables", "mnt"], "goes to --endpoint"),
    (["mount", "s3://t", "mnt"], "'t' in 's3://t' is not a bucket name"),
    (["mount", "s3://tables", "mnt", "-o", "frob"], "unknown mount option 'frob'; known are ro"),
    (["mount", "s3://tables", "mnt", "--ttl", "60"], "--ttl: '60' is not a time to believe names for; write immutable, strict or a duration"),
    (["mount", "s3://tables", "mnt", "--timeout", "100ms"], "--timeout: '100ms' is too little to work with; give at least 1s"),
    (["mount", "s3://tables", "mnt", "--memory", "10"], "--memory: '10' is too little to work with; give at least 16MiB"),
    (["mount", "s3://tables", "mnt", "--cache-size", "20GX"], "--cache-size: '20GX' is not a size"),
    (["mount", "s3://tables", "mnt", "--cache-size", "200%"], "--cache-size: '200%' is not a share"),
    (["mount", "s3://tables", "mnt", "--uid", "nobody-at-all"], "--uid: there is no user 'nobody-at-all' on this machine"),
    (["mount", "s3://tables", "mnt", "--gid", "no-group"], "--gid: there is no group 'no-group'"),
    (["mount", "s3://tables", "mnt", "--file-mode", "0999"], "--file-mode: '0999' is not a set of permission bits; write octal"),
    (["mount", "s3://tables", "mnt", "--connections", "many"], "--connections: 'many' is not a whole number"),
    (["mount", "s3://tables", "mnt", "--log-level", "loud"], "--log-level: 'loud' is not a log level; write debug, info, warn or error"),
    (["mount", "s3://tables", "mnt", "--log", "stderr"], "nobody reads stderr in the background; give a file or syslog, or stay in the foreground"),
    (["mount", "s3://tables", "mnt", "--metrics", "0.0.0.0:9464"], "'0.0.0.0:9464' is not a loopback address"),
    (["mount", "s3://tables", "mnt", "--metrics", "127.0.0.1"], "has no port"),
    (["s3sim", "--memory", "--faults", "explode=1"], "explode"),
]


@pytest.mark.parametrize("words,says", MISTAKES, ids=[" ".join(words)[:60] for words, _ in MISTAKES])
def test_a_mistyped_call_is_answered_with_what_to_type(desk, words, says):
    desk.refused(*words, code=1 if words[0] == "s3sim" else 2, says=says)


def test_a_bucket_named_like_a_command_can_be_mounted(desk, shop):
    """One letter off a command: mounted all the same, with a word of warning."""
    shop.client().create_bucket(Bucket="stats")
    result = desk.done("stats", desk.mnt, "--cache", desk.cache, "--endpoint", shop.url)
    assert "note: 'stats' is taken for a bucket; the command is `thermo status`" in result.stderr or "`thermo stat`" in result.stderr
    assert harness.is_mounted(desk.mnt)


# Seeing and steering

def test_each_command_answers_in_json(desk, shop):
    desk.mount("s3://tables", "--endpoint", shop.url)
    part = desk.mnt / "quotes/2024-01-01/part"
    one, folder = desk.json("stat", part, desk.mnt / "quotes")
    assert one == one | {"path": str(part), "type": "file", "key": "quotes/2024-01-01/part", "size": 300_000, "resident": 0,
                         "store": "s3://tables/quotes/2024-01-01/part", "endpoint": shop.url, "ino": part.stat().st_ino}
    assert re.fullmatch(r'"[0-9a-f]{32}"', one["etag"]) and re.fullmatch(r"[0-9a-f]{32}", one["version"]) and one["mtime_ns"] > 1e18
    assert folder == folder | {"type": "folder", "key": "quotes/"}

    loaded, = desk.json("load", desk.mnt / "quotes", desk.mnt / "top")
    assert loaded == loaded | {"files": 3, "bytes": 600_005, "bytes_done": 600_005, "bytes_present": 0, "files_failed": 0, "failures": [],
                               "mount_point": str(desk.mnt)}
    assert loaded["seconds"] > 0
    again, = desk.json("load", desk.mnt / "quotes")
    assert again["bytes_present"] == again["bytes"] == 600_000

    names = {entry["name"]: entry for entry in desk.json("ls", desk.mnt)}
    assert list(names) == ["quotes", "top", "trades"] and names["quotes"]["type"] == "folder"
    assert names["top"] == names["top"] | {"size": 5, "resident": 5}

    status = desk.json("status", desk.mnt)
    assert status["daemon"]["pid"] == desk.pid() and status["cache"]["objects"] == 3 and status["cache"]["used"] >= 600_005
    assert [(m["store"], m["mount_point"], m["endpoint"]) for m in status["mounts"]] == [("s3://tables", str(desk.mnt), shop.url)]
    assert status["traffic"]["store_requests"]["get"] == 3 and status["traffic"]["bytes_fetched"] == 600_005
    assert status["memory"]["process"]["private"] > 1 << 20
    assert [s["daemon"]["pid"] for s in desk.json("status", "--cache", desk.cache) if s["cache"]["folder"] == str(desk.cache)] == [desk.pid()]
    assert any(name.startswith("thermocline_") for name in desk.json("status", desk.mnt, "--metrics")["metrics"])

    freed, = desk.json("free", desk.mnt / "quotes")
    assert freed["files"] == 2 and freed["bytes"] >= 600_000
    assert desk.json("stat", part)[0]["resident"] == 0
    gone = desk.json("umount", desk.mnt)
    assert gone == {"mount_point": str(desk.mnt), "was_dead": False, "daemon_ended": True}
    desk.check_clean()


def test_each_command_answers_people(desk, shop):
    desk.mount("s3://tables", "--endpoint", shop.url)
    load = desk.done("load", desk.mnt)
    assert re.fullmatch(r"5 files, 1\.1 MiB: 0 B were there already; [\d.]+ m?s\n", load.stdout)
    percents = [int(line.split("%")[0]) for line in load.stderr.splitlines() if line]
    assert percents == sorted(percents), "progress, in lines where nobody watches"
    listing = desk.done("ls", desk.mnt).stdout.splitlines()
    assert re.fullmatch(r" +- +- +- +quotes/", listing[0]) and re.fullmatch(r' +5 +100% +"[0-9a-f]{32}" +top', listing[1])
    text = desk.done("stat", desk.mnt / "top").stdout
    assert "store: s3://tables/top\n" in text and "cached: 5 of 5 bytes (100%)" in text
    status = desk.done("status", desk.mnt).stdout
    assert f"cache    {desk.cache}: " in status and f"mount    s3://tables at {desk.mnt}, up " in status and "served   " in status
    assert re.fullmatch(r"freed [\d.]+ (K|M)iB of 5 files\n", desk.done("free", desk.mnt).stdout)
    assert desk.done("umount", desk.mnt).stdout == ""


def test_load_draws_a_bar_on_a_terminal(desk, sim, payload):
    for i in range(4):
        sim.client().put_object(Bucket="tables", Key=f"f{i}", Body=payload(2_000_000, i))
    sim.options(total="10MB/s")
    desk.mount("s3://tables", "--endpoint", sim.url)
    terminal, end = pty.openpty()
    process = desk.start("load", desk.mnt, stderr=end, stdout=subprocess.PIPE)
    os.close(end)
    drawn = b""
    while True:
        try:
            drawn += os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
    os.close(terminal)
    assert process.wait(30) == 0
    bars = [int(p) for p in re.findall(rb"\r\[#* *\] +(\d+)%  [^\r\n]* of 7\.6 MiB", drawn)]
    assert len(bars) >= 2 and bars == sorted(bars) and bars[0] < 100


def test_a_load_that_fails_says_which_file(desk, sim, payload):
    sim.client().put_object(Bucket="tables", Key="good", Body=b"good")
    sim.client().put_object(Bucket="tables", Key="gone", Body=payload(2_000_000))
    desk.mount("s3://tables", "--endpoint", sim.url)
    assert sorted(os.listdir(desk.mnt)) == ["gone", "good"]
    sim.client().delete_object(Bucket="tables", Key="gone")
    result = desk.run("load", desk.mnt)
    assert result.returncode == 1
    assert "thermo: 1 files were not loaded; the first: 'gone': " in result.stderr
    answer, = json.loads(desk.run("load", desk.mnt / "gone", desk.mnt / "good", "--json").stdout)
    assert [f["key"] for f in answer["failures"]] == ["gone"] and answer["files_failed"] == 1


def test_names_of_any_bytes_go_through(desk, tmp_path):
    odd = [b"a b", b"new\nline", b"caf\xc3\xa9", b"bad\xff", b"per%cent", b'quote"\\']
    for name in odd:
        pathlib.Path(os.fsdecode(os.fsencode(str(tmp_path)) + b"/" + name)).write_bytes(b"x")
    desk.mount(f"file://{tmp_path}")
    names = [entry["name"] for entry in desk.json("ls", desk.mnt)]
    assert sorted(names) == sorted(name.decode(errors="replace") for name in odd)
    for name in odd:
        path = os.fsencode(str(desk.mnt)) + b"/" + name
        entry, = json.loads(subprocess.run([desk.thermo, "stat", path, "--json"], capture_output=True, env=desk.env, check=True).stdout)
        assert entry["size"] == 1
    raw = subprocess.run([desk.thermo, "ls", str(desk.mnt)], capture_output=True, env=desk.env, check=True).stdout
    assert all(name in raw for name in odd)


def test_paths_are_taken_to_their_own_mounts(desk, shop, tmp_path):
    """One command over two mounts, relative paths and links; a path outside of both is named."""
    (tmp_path / "local").write_text("local")
    other = desk.folder / "oth er"
    other.mkdir()
    desk.mount("s3://tables/quotes", "--endpoint", shop.url)
    desk.done("mount", f"file://{tmp_path}", "oth er", "--cache", desk.cache)
    (desk.folder / "link").symlink_to(desk.mnt / "2024-01-02")
    found = desk.json("stat", "link/part", "oth er/local", "mnt")
    assert [entry["store"] for entry in found] == ["s3://tables/quotes/2024-01-02/part", "s3://tables/quotes/", f"file://{tmp_path}/local"] or \
           [entry["store"] for entry in found] == ["s3://tables/quotes/2024-01-02/part", f"file://{tmp_path}/local", "s3://tables/quotes/"]
    assert [answer["mount_point"] for answer in desk.json("load", "link", "oth er")] == [str(desk.mnt), str(other)]
    for words, says in ((["stat", "/tmp"], "'/tmp' is not inside a Thermocline mount; `thermo status` lists the mounts"),
                        (["stat", "mnt/none"], "'mnt/none': No such file or directory"), (["load", "/none"], "'/none': No such file"),
                        (["umount", "/tmp"], "nothing of Thermocline is mounted at '/tmp'"), (["umount", "none"], "'none' does not exist")):
        result = desk.run(*words)
        assert result.returncode == 1 and says in result.stderr, result.stderr
    desk.done("umount", "oth er/")
    desk.done("umount", "mnt")
    desk.check_clean()
    assert desk.run("status", desk.mnt).returncode == 1


# One daemon for each cache

def test_mounts_share_the_daemon_of_their_cache(desk, shop, tmp_path):
    other = desk.folder / "other"
    other.mkdir()
    desk.mount("s3://tables", "--endpoint", shop.url, "--cache-size", "1GiB")
    pid = desk.pid()
    result = desk.done("mount", f"file://{tmp_path}", other, "--cache", desk.cache, "--cache-size", "2GiB", "--log", "x")
    assert "note: --cache-size belongs to the daemon, which runs already" in result.stderr and "note: --log belongs" in result.stderr
    assert len(desk.json("status", other)["mounts"]) == 2 and desk.daemons() == [pid]
    assert desk.json("umount", desk.mnt)["daemon_ended"] is False
    assert os.listdir(other) == [] and desk.daemons() == [pid]
    assert desk.json("umount", other)["daemon_ended"] is True
    desk.check_clean()


def test_many_mounts_at_once_start_one_daemon(desk, tmp_path):
    (tmp_path / "f").write_text("x")
    points = [desk.folder / f"m{i}" for i in range(6)]
    for point in points:
        point.mkdir()
    calls = [desk.start("mount", f"file://{tmp_path}", point, "--cache", desk.cache) for point in points]
    for call in calls:
        out, err = call.communicate(timeout=30)
        assert call.returncode == 0, err
    assert len(desk.daemons()) == 1 and all((point / "f").read_text() == "x" for point in points)
    for call in [desk.start("umount", point) for point in points]:
        assert call.wait(30) == 0, call.stderr.read()
    harness.wait_for(lambda: not desk.daemons(), 10, "the daemon to end")
    desk.check_clean()


def test_a_daemon_of_its_own_serves_until_told_to_end(desk, shop):
    daemon = desk.start("daemon", "--cache", desk.cache, "--cache-size", "1GiB")
    try:
        harness.wait_for(lambda: desk.run("status", "--cache", desk.cache).stdout.startswith("daemon"), 15, "the daemon")
        desk.mount("s3://tables", "--endpoint", shop.url)
        assert desk.pid() == daemon.pid and (desk.mnt / "top").read_text() == "hello"
        assert desk.json("umount", desk.mnt)["daemon_ended"] is False
        time.sleep(0.2)
        assert daemon.poll() is None, "it stays without mounts"
        second = desk.run("daemon", "--cache", desk.cache)
        assert second.returncode == 1
        assert f"cache folder '{desk.cache}' is in use by process {daemon.pid}; attach to that daemon, stop it, or choose another" in second.stderr
        desk.mount("s3://tables", "--endpoint", shop.url)
        keep = open(desk.mnt / "top")
        daemon.send_signal(signal.SIGTERM)
        out, err = daemon.communicate(timeout=20)
        keep.close()
        assert daemon.returncode == 0 and "ending on signal 15" in err and "ended" in err.splitlines()[-1], err
    finally:
        harness.stop_process(daemon)
    desk.check_clean()
    assert (desk.cache / "clean").exists()


def test_the_cache_and_its_socket_are_not_for_others(desk, tmp_path):
    process = start_foreground(desk, f"file://{tmp_path}")
    assert stat.S_IMODE((desk.cache / "admin.sock").stat().st_mode) in (0o600, 0o660)
    for name in ("objects", "catalog", "records"):
        assert (desk.cache / name).stat().st_mode & 0o007 == 0, name
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


def test_a_long_cache_path_has_its_socket_elsewhere(desk, tmp_path):
    (tmp_path / "f").write_text("x")
    desk.cache = desk.folder / ("long" * 30)
    desk.mount(f"file://{tmp_path}")
    socket_path = desk.json("status", desk.mnt)["daemon"]["socket"]
    assert not socket_path.startswith(str(desk.cache)) and stat.S_IMODE(os.stat(os.path.dirname(socket_path)).st_mode) == 0o700
    desk.umount()
    assert not os.path.exists(socket_path)
    desk.check_clean()


def test_a_dead_daemon_is_named_and_its_mount_replaced(desk, shop):
    desk.mount("s3://tables", "--endpoint", shop.url)
    assert (desk.mnt / "top").read_text() == "hello"
    desk.kill()
    dead = f"the mount at '{desk.mnt}' is dead: its daemon is gone; `thermo umount {desk.mnt}` clears it, a new `thermo mount` replaces it"
    for words in (["stat", desk.mnt / "top"], ["load", desk.mnt], ["status", desk.mnt]):
        result = desk.run(*words)
        assert result.returncode == 1 and dead in result.stderr, (words, result.stderr)
    result = desk.mount("s3://tables", "--endpoint", shop.url)
    assert f"note: '{desk.mnt}' held a mount whose daemon is dead; it is replaced" in result.stderr
    assert (desk.mnt / "top").read_text() == "hello"
    desk.kill()
    assert desk.json("umount", desk.mnt)["was_dead"] is True
    desk.check_clean()


def test_umount_of_a_mount_in_use_names_the_way_out(desk, tmp_path):
    (tmp_path / "f").write_text("x" * 100)
    desk.mount(f"file://{tmp_path}")
    with open(desk.mnt / "f") as keep:
        result = desk.run("umount", desk.mnt)
        assert result.returncode == 1 and f"`fuser -vm {desk.mnt}`" in result.stderr and "`thermo umount -l`" in result.stderr
        assert harness.is_mounted(desk.mnt), "nothing was done"
        lazy = desk.start("umount", "-l", desk.mnt)
        harness.wait_for(lambda: not harness.is_mounted(desk.mnt), 10, "the mount to be detached")
        assert keep.read(1) == "x", "who has it open is served on"
    assert lazy.wait(20) == 0
    harness.wait_for(lambda: not desk.daemons(), 15, "the daemon to end")
    desk.check_clean()


def test_a_lazy_umount_does_not_wait_for_its_users(desk, tmp_path):
    """It waited for half a minute and then called what it had done a failure."""
    (tmp_path / "f").write_text("x" * 100)
    desk.mount(f"file://{tmp_path}")
    with open(desk.mnt / "f") as keep:
        begin = time.monotonic()
        result = desk.run("umount", "-l", desk.mnt, "--json")
        assert result.returncode == 0 and time.monotonic() - begin < 10 * harness.SLOW, result.stderr
        assert json.loads(result.stdout) == {"mount_point": str(desk.mnt), "was_dead": False, "daemon_ended": False}
        assert result.stderr == f"thermo: note: '{desk.mnt}' is detached; programs still use it and are served until they close their files\n"
        assert not harness.is_mounted(desk.mnt) and keep.read(1) == "x"
    harness.wait_for(lambda: not desk.daemons(), 15, "the daemon to end")
    desk.mount(f"file://{tmp_path}")
    assert desk.run("umount", "-l", desk.mnt).stderr == "", "nobody uses it"
    desk.check_clean()


def test_the_socket_answers_garbage_and_goes_on(desk, tmp_path):
    (tmp_path / "f").write_text("x")
    desk.mount(f"file://{tmp_path}")
    requests = [(b"garbage", "invalid_argument"), (b"[]", "invalid_argument"), (b"{}", "invalid_argument"), (b'{"command":"frob"}', "not_supported"),
                (b'{"command":"stat"}', "invalid_argument"), (b'{"command":"stat","mount":99,"paths":[]}', "not_found"), (b'\xff\xfe', "invalid_argument"),
                (b'{"command":"stat","mount":1,"paths":["../x"]}', "invalid_argument"), (b'{"command":"stat","mount":1,"paths":["%2"]}', "invalid_argument"),
                (b'{"command":"attach"}', "invalid_argument"), (b'{"command":"prepare","spec":{}}', "invalid_argument"), (b'{"command":"stat","mount":1,"paths":["f"]}', None)]
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        s.connect(str(desk.cache / "admin.sock"))
        for line, code in requests:
            s.sendall(line + b"\n")
            answer = json.loads(s.makefile().readline())
            assert answer["error"]["code"] == code if code else answer["ok"]["entries"][0]["size"] == 1, (line, answer)
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        s.connect(str(desk.cache / "admin.sock"))
        with pytest.raises(OSError):  # longer than any line may be
            for _ in range(100):
                s.sendall(b"x" * (1 << 20))
    assert (desk.mnt / "f").read_text() == "x"


def test_more_paths_than_one_answer_holds(desk, tmp_path):
    """The answer to all of them in one line was longer than a line may be."""
    count = 12_000
    for d in range(24):
        (tmp_path / f"d{d:02}").mkdir()
        for f in range(count // 24):
            (tmp_path / f"d{d:02}/f{f:03}").write_text("x" * (f % 3))
    desk.mount(f"file://{tmp_path}")
    paths = [f"mnt/d{d:02}/f{f:03}" for d in range(24) for f in range(count // 24)]
    entries = desk.json("stat", *paths)
    assert [entry["path"] for entry in entries] == paths and [entry["size"] for entry in entries] == [f % 3 for _ in range(24) for f in range(count // 24)]


def test_paths_longer_than_one_request(desk, tmp_path):
    """Encoded, all paths together are more than the 4 MiB that a line may have."""
    deep = tmp_path.joinpath(*["é" * 120] * 4)
    deep.mkdir(parents=True)
    names = [f"f{i:03}" for i in range(100)]
    for name in names:
        (deep / name).write_text("x")
    desk.mount(f"file://{tmp_path}")
    paths = [f"mnt/{deep.relative_to(tmp_path)}/{name}" for name in names] * 16
    assert [entry["path"] for entry in desk.json("stat", *paths)] == paths
    assert len(desk.json("ls", *paths)) == len(paths)
    loaded, = desk.json("load", *paths)
    assert (loaded["files"], loaded["bytes"], loaded["files_failed"], loaded["failures"]) == (len(paths), len(paths), 0, [])
    freed, = desk.json("free", *paths)
    assert freed["files"] == len(names) and freed["mount_point"] == str(desk.mnt)


@pytest.mark.parametrize("command", ["load", "free"])
def test_a_long_walk_reports_from_its_start(desk, sim, command):
    """A client hears of it, so that it does not give up on a large tree, and one that has gone ends it."""
    folders = 20
    for i in range(folders):
        sim.bulk("tables", f"d{i:02}/", 1000)
    desk.mount("s3://tables", "--endpoint", sim.url)
    sim.faults("slowfirst=1:100ms@LIST")
    request = json.dumps({"command": command, "mount": 1, "paths": [""]}).encode() + b"\n"
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20 * harness.SLOW)
        s.connect(str(desk.cache / "admin.sock"))
        s.sendall(request)
        first = json.loads(s.makefile().readline())
    if command == "load":
        assert 0 < first["progress"]["files"] < folders * 1000 and first["progress"]["bytes_done"] == 0, first
    else:
        assert first == {"progress": {"files": 0, "bytes": 0}}
    time.sleep(0.7)
    asked = sim.requests("LIST")
    assert asked < folders, "the walk went on for nobody"
    time.sleep(0.7)
    assert sim.requests("LIST") == asked
    sim.faults("")
    assert desk.json("stat", desk.mnt / "d00/00000000")[0]["type"]


# In the foreground

def test_foreground_logs_to_stderr_and_ctrl_c_unmounts(desk, shop):
    process = start_foreground(desk, "s3://tables", "--endpoint", shop.url)
    assert (desk.mnt / "top").read_text() == "hello"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0 and out == ""
    assert "mounted s3://tables at" in err and err.splitlines()[-1].endswith("ended")
    assert not (desk.cache / "thermo.log").exists()
    desk.check_clean()


def test_foreground_while_in_use(desk, tmp_path):
    (tmp_path / "f").write_text("x")
    process = start_foreground(desk, f"file://{tmp_path}")
    with open(desk.mnt / "f"):
        process.send_signal(signal.SIGINT)
        harness.wait_for(lambda: not harness.is_mounted(desk.mnt), 10, "the mount to be detached")
        assert process.poll() is None, "whoever uses it is served on"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 0 and "is in use" in err and "or at the next Ctrl-C" in err
    desk.check_clean()


def test_foreground_ends_when_unmounted_from_elsewhere(desk, tmp_path):
    process = start_foreground(desk, f"file://{tmp_path}")
    subprocess.run(["umount", str(desk.mnt)], check=True)
    assert process.wait(20) == 0
    desk.check_clean()


def test_foreground_on_a_daemon_that_runs_already(desk, tmp_path):
    other = desk.folder / "other"
    other.mkdir()
    desk.done("mount", f"file://{tmp_path}", other, "--cache", desk.cache)
    process = start_foreground(desk, f"file://{tmp_path}")
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    assert os.listdir(other) == [] and not harness.is_mounted(desk.mnt)
    desk.done("umount", other)
    desk.check_clean()


def test_foreground_whose_daemon_got_other_mounts(desk, tmp_path):
    """It waited for its daemon, which served on, deaf to every further Ctrl-C."""
    process = start_foreground(desk, f"file://{tmp_path}")
    other = desk.folder / "other"
    other.mkdir()
    desk.done("mount", f"file://{tmp_path}", other, "--cache", desk.cache)
    process.send_signal(signal.SIGINT)
    harness.wait_for(lambda: not harness.is_mounted(desk.mnt), 10, "the unmount")
    time.sleep(0.5)
    assert process.poll() is None and os.listdir(other) == [], "the other mount is served on"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20 * harness.SLOW)
    assert process.returncode == 0
    assert err.count("thermo: note: the daemon of this cache still serves other mounts; Ctrl-C again ends it and unmounts them\n") == 1, err
    desk.check_clean()


def test_signals_that_are_ignored_stay_ignored(desk, tmp_path):
    """As nohup does it, and a shell for what a script starts in the background."""
    ignored = (signal.SIGHUP, signal.SIGINT)
    process = start_foreground(desk, f"file://{tmp_path}", preexec_fn=lambda: [signal.signal(one, signal.SIG_IGN) for one in ignored])
    for one in ignored:
        process.send_signal(one)
    time.sleep(0.5)
    assert process.poll() is None and harness.is_mounted(desk.mnt)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20 * harness.SLOW)
    assert process.returncode == 0, err
    desk.check_clean()


def test_foreground_reports_a_failure_at_once(desk, shop):
    desk.refused_mount("s3://no-such-bucket", "-f", "--endpoint", shop.url, "--log", desk.folder / "log", says="there is no bucket 'no-such-bucket'")


# Log

def test_debug_lines_tell_each_operation_and_request(desk, shop):
    desk.mount("s3://tables", "--endpoint", shop.url, "--debug_fuse", "--debug_s3")
    assert (desk.mnt / "quotes/2024-01-01/part").stat().st_size == 300_000
    assert len((desk.mnt / "quotes/2024-01-01/part").read_bytes()) == 300_000
    assert not (desk.mnt / "none").exists()

    def lines(channel):
        return [line for line in desk.log().splitlines() if f" I {channel} " in line]

    harness.wait_for(lambda: any("op=RELEASE " in line for line in lines("fuse")), 5, "the last line")
    for channel, form in LINES.items():
        assert lines(channel), channel
        for line in lines(channel):
            assert form.match(line), line
    text = desk.log()
    assert f"op=READ mount={desk.mnt} path='quotes/2024-01-01/part' " in text
    assert re.search(r"op=LOOKUP mount=\S+ path='none' node=1 ", text)
    assert re.search(rf"op=get store=s3://127.0.0.1:{shop.port}/tables path='quotes/2024-01-01/part' range=0\+300000 bytes=300000 ms=\S+ result=ok", text)

    desk.done("debug", desk.mnt, "fuse", "off")
    desk.done("debug", desk.mnt, "s3", "off")
    before = (len(lines("fuse")), len(lines("s3")))
    assert (desk.mnt / "top").read_text() == "hello"
    time.sleep(0.1)
    assert (len(lines("fuse")), len(lines("s3"))) <= (before[0] + 1, before[1]), "but for the one that was under way"
    desk.done("debug", desk.mnt, "s3", "on")
    (desk.mnt / "trades/2024-01-01/part").read_bytes()
    harness.wait_for(lambda: len(lines("s3")) > before[1], 5, "a line after switching on")
    assert desk.run("debug", desk.mnt, "http", "on").returncode == 1


def test_no_secret_is_ever_written_down(desk, thermo):
    """Keys from the environment and from a profile: not in any log at the most talkative level, in no file of the cache, on no command line."""
    secrets = {"AWS_SECRET_ACCESS_KEY": "sEcReT/environment+0123456789", "AWS_SESSION_TOKEN": "tOkEnOfTheSession=="}
    (desk.home / ".aws").mkdir()
    (desk.home / ".aws/credentials").write_text("[mine]\naws_access_key_id = PROFILEKEY\naws_secret_access_key = sEcReT/profile\n")
    with harness.Sim(thermo, "--memory", "--access-key", "test:sEcReT/environment+0123456789", "--access-key", "PROFILEKEY:sEcReT/profile") as server:
        client = harness.s3_client(server.url, secret="sEcReT/environment+0123456789")
        client.create_bucket(Bucket="tables")
        client.put_object(Bucket="tables", Key="f", Body=b"x" * 100_000)
        said = ""
        for words in ([], ["--profile", "mine"], ["--profile", "mine", "--endpoint", server.url + "/"]):
            flags = ["--endpoint", server.url, "--debug_fuse", "--debug_s3", "--log-level", "debug", *words]
            said += desk.mount("s3://tables", *flags, env=secrets).stderr
            assert (desk.mnt / "f").read_bytes() == b"x" * 100_000
            server.faults("reset=1@GET*1,error500=1@LIST*1")
            desk.done("free", desk.mnt)
            assert (desk.mnt / "f").read_bytes() == b"x" * 100_000
            said += desk.done("status", desk.mnt, "--json", "--metrics").stdout + desk.done("stat", desk.mnt / "f").stdout
            said += pathlib.Path(f"/proc/{desk.pid()}/cmdline").read_bytes().decode()
            desk.umount()
            server.faults("")
        said += desk.run("mount", "s3://tables", desk.mnt, "--cache", desk.cache, "--endpoint", server.url,
                         env=secrets | {"AWS_SECRET_ACCESS_KEY": "sEcReT/wrong"}).stderr
    assert "the secret key is wrong" in said and " I s3 " in desk.log()
    kept = b"".join(path.read_bytes() for path in desk.cache.rglob("*") if path.is_file())
    for secret in (*secrets.values(), "sEcReT/profile", "sEcReT/wrong", "tOkEnOf", "sEcReT"):
        assert secret not in said and secret not in desk.log() and secret.encode() not in kept, secret


def test_log_to_a_file_of_ones_own(desk, tmp_path):
    desk.mount(f"file://{tmp_path}", "--log", "mine.log", "--log-level", "debug")
    text = (desk.folder / "mine.log").read_text()
    assert f"mounted file://{tmp_path} at {desk.mnt}" in text and not (desk.cache / "thermo.log").exists()
    # Rotated away and SIGHUP: a new file at the old place.
    (desk.folder / "mine.log").rename(desk.folder / "mine.log.1")
    os.kill(desk.pid(), signal.SIGHUP)
    harness.wait_for(lambda: (desk.folder / "mine.log").exists(), 5, "the log to be opened again")
    desk.umount()
    assert "unmounted" in (desk.folder / "mine.log").read_text()


def test_log_to_syslog(desk, tmp_path):
    if os.geteuid() != 0 or os.path.exists("/dev/log"):
        pytest.skip("needs root and a machine without a syslog daemon, whose socket this test would have to take")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("/dev/log")
        try:
            listener.settimeout(10)
            desk.mount(f"file://{tmp_path}", "--log", "syslog")
            desk.umount()
            listener.setblocking(False)
            got = []
            while True:
                try:
                    got.append(listener.recv(4096).decode())
                except BlockingIOError:
                    break
        finally:
            os.unlink("/dev/log")
    assert any(re.match(r"<30>.*thermo\[\d+\]: mounted file://", line) for line in got), got


# Metrics

def test_metrics_page_for_prometheus(desk, shop):
    desk.mount("s3://tables", "--endpoint", shop.url, "--metrics", "127.0.0.1:0")
    (desk.mnt / "top").read_text()
    url = desk.json("status", desk.mnt)["daemon"]["metrics"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/metrics", url)
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        page = answer.read().decode()
    typed = set()
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            assert kind in ("counter", "gauge", "histogram") and name not in typed
            typed.add(name)
        elif not line.startswith("# HELP "):
            match = re.fullmatch(r'([a-z_:][a-z0-9_:]*)(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? (\+Inf|-?[0-9.e+-]+)', line)
            assert match, line
            assert re.sub(r"_(bucket|sum|count)$", "", match[1]) in typed or match[1] in typed, line
    assert 'thermocline_bytes_served_total{tier="warm"} ' in page and 'thermocline_store_requests_total{' in page
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(url.replace("/metrics", "/other"), timeout=10)
    assert caught.value.code == 404
    desk.umount()
    with pytest.raises(OSError):
        urllib.request.urlopen(url, timeout=2)


def test_status_without_any_daemon(desk):
    if any(line.split(" - ")[1].startswith("fuse.thermo") for line in open("/proc/self/mountinfo")):
        pytest.skip("somebody else has a mount here")
    assert desk.done("status", "--cache", desk.cache).stdout == "no daemon is running\n"
    assert desk.json("status", "--cache", desk.cache) == []


def test_ctrl_c_while_loading_leaves_the_daemon_well(desk, sim, payload):
    for i in range(8):
        sim.client().put_object(Bucket="tables", Key=f"f{i}", Body=payload(1_000_000, i))
    sim.options(total="3MB/s")
    desk.mount("s3://tables", "--endpoint", sim.url)
    process = desk.start("load", desk.mnt)
    timer = threading.Timer(0.5, lambda: process.send_signal(signal.SIGINT))
    timer.start()
    assert process.wait(20) != 0
    timer.join()
    sim.options(total=0)
    assert (desk.mnt / "f0").read_bytes() == payload(1_000_000, 0)
    harness.wait_for(lambda: desk.json("status", desk.mnt)["mounts"][0]["waiting_requests"] == 0, 10, "requests to end")
    desk.umount()
    desk.check_clean()
