"""Mounts that cannot be: each is refused with one sentence that names the input and the mend, and leaves nothing behind.

Last, the other way round: the command line of goofys, each of its flags accepted or refused with what replaces it.
"""
import contextlib
import datetime
import email.utils
import http.server
import os
import random
import shutil
import signal
import subprocess
import threading
import time

import harness
import pytest
from desk import Desk


@contextlib.contextmanager
def tmpfs(path, *options):
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    path.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(["size=64m", *options]), "tmpfs", str(path)], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


class Stub(http.server.ThreadingHTTPServer):
    """Answers every request with the same status, headers and body."""

    def __init__(self, status, body=b"", headers=()):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802
                self.send_response_only(status)
                for name, value in (*headers, ("Content-Length", str(len(body)))):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *unused):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=[0.02], daemon=True).start()
        return self

    def __exit__(self, *unused):
        self.shutdown()
        self.server_close()


# The store

def test_no_such_bucket(desk, shop):
    desk.refused_mount("s3://no-such-bucket/x", "--endpoint", shop.url,
                       says=[f"there is no bucket 'no-such-bucket' at {shop.url}", "NoSuchBucket", "check the bucket's name and the endpoint"])
    assert desk.log().count(" serves the cache ") == 1, "one daemon was started for it, once"


def test_wrong_keys(desk, shop):
    refused = f"{shop.url} refuses access to s3://tables with the keys of the environment (AWS_ACCESS_KEY_ID): "
    desk.refused_mount("s3://tables", "--endpoint", shop.url, env={"AWS_SECRET_ACCESS_KEY": "wrong"},
                       says=[refused, "SignatureDoesNotMatch", "the secret key is wrong"])
    shop.faults("error500=1@LIST*1")  # a hiccup before it does not hide the reason
    desk.refused_mount("s3://tables", "--endpoint", shop.url, env={"AWS_SECRET_ACCESS_KEY": "wrong"}, says=[refused, "the secret key is wrong"])
    shop.faults("")
    desk.refused_mount("s3://tables", "--endpoint", shop.url, env={"AWS_ACCESS_KEY_ID": "nobody"}, says=[refused, "InvalidAccessKeyId", "no such access key"])
    desk.refused_mount("s3://tables", "--endpoint", shop.url, "--no-sign-request",
                       says=[f"{shop.url} refuses access to s3://tables without keys (--no-sign-request)", "AccessDenied",
                             "mount that: s3://tables/PREFIX"])
    (desk.home / ".aws").mkdir()
    (desk.home / ".aws/credentials").write_text("[old]\naws_access_key_id = test\naws_secret_access_key = before\n")
    desk.refused_mount("s3://tables", "--endpoint", shop.url, "--profile", "old",
                       says=[f"with the keys of profile 'old' of {desk.home}/.aws/credentials", "the secret key is wrong"])
    desk.refused_mount("s3://tables", "--endpoint", shop.url, "--profile", "new", says=["there is no profile 'new'", f"{desk.home}/.aws/credentials", "old"])


def test_half_a_key_and_none_at_all(desk, shop):
    desk.refused_mount("s3://tables", "--endpoint", shop.url, env={"AWS_SECRET_ACCESS_KEY": ""},
                       says=["only one of access key id and secret access key is given in the environment", "give both"])
    sentence = desk.refused_mount("s3://tables", "--endpoint", shop.url, env={"AWS_SECRET_ACCESS_KEY": "", "AWS_ACCESS_KEY_ID": ""})
    assert "AWS_ACCESS_KEY_ID" in sentence and "--no-sign-request" in sentence, sentence


@pytest.mark.parametrize("minutes", [20, -20])
def test_a_clock_that_is_off_is_corrected(desk, thermo, minutes):
    """The store refuses with RequestTimeTooSkewed; its Date header tells the right time, and the log tells the operator."""
    with harness.Sim(thermo, "--memory", "--access-key", "test:testtest") as server:
        client = server.client()
        client.create_bucket(Bucket="tables")
        client.put_object(Bucket="tables", Key="f", Body=b"right")
        client.put_object(Bucket="tables", Key="later", Body=b"later")
        server.options(clock_offset_s=60 * minutes)
        server.reset()
        desk.mount("s3://tables", "--endpoint", server.url)
        assert (desk.mnt / "f").read_bytes() == b"right"
        side = "behind" if minutes > 0 else "ahead of"
        assert f"the clock of this machine is 20 min {side} the store: set it, e.g. with chrony or timedatectl" in desk.log()
        assert server.stats()["requests"]["LIST"] <= 6, "refused once, not once for each request"
        # It goes on being right when the store's clock jumps while mounted.
        server.options(clock_offset_s=-60 * minutes)
        assert (desk.mnt / "later").read_bytes() == b"later"
        desk.umount()


def test_a_clock_that_cannot_be_corrected_is_named(desk):
    body = b"<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message></Error>"
    with Stub(403, body) as server:
        desk.refused_mount("s3://tables", "--endpoint", server.url,
                           says=[f"the clocks of this machine and of {server.url} differ by more than 15 minutes", "set this machine's clock, e.g. with chrony or timedatectl"])
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=40)
    with Stub(403, body, [("Date", email.utils.format_datetime(later, usegmt=True))]) as server:
        desk.refused_mount("s3://tables", "--endpoint", server.url, says=["the clock of this machine is 40 min behind the store", "RequestTimeTooSkewed"])


def test_what_answers_is_no_s3(desk):
    with Stub(200, b"<html>Welcome</html>", [("Content-Type", "text/html")]) as server:
        desk.refused_mount("s3://tables", "--endpoint", server.url, says=[f"{server.url} answers, but not as an S3 store: ", "; check --endpoint"])


@pytest.fixture(scope="module", autouse=True)
def calls_to_endpoints_that_are_down(thermo):
    """Four ways of being down, tried while the other tests run because some take the whole patience of 10 s."""
    with contextlib.ExitStack() as stack:
        silent = stack.enter_context(harness.Sim(thermo, "--memory"))
        busy = stack.enter_context(harness.Sim(thermo, "--memory", "--faults", "slowdown=1"))
        silent.pause()
        cases = [(f"http://127.0.0.1:{harness.free_port()}", ["does not answer: cannot connect to 127.0.0.1:", "check that the store runs and that --endpoint"]),
                 ("http://store.invalid:9000", ["does not answer", "store.invalid:9000", "check the host name in --endpoint"]),
                 (silent.url, [f"{silent.url} does not answer"]),
                 (busy.url, [f"{busy.url} asks for fewer requests right now", "try again later"])]
        calls = []
        for url, says in cases:
            desk = Desk(thermo)
            stack.callback(desk.close)
            calls.append((desk, desk.start("mount", "s3://tables", desk.mnt, "--cache", desk.cache, "--endpoint", url), time.monotonic(), says))
        yield calls


@pytest.mark.parametrize("words", [[], ["-f"]], ids=["background", "foreground"])
def test_giving_up_on_a_silent_store(desk, sim, words):
    """Ctrl-C while the store is waited for: the daemon does not wait on."""
    sim.pause()
    process = desk.start("mount", "s3://tables", desk.mnt, "--cache", desk.cache, "--endpoint", sim.url, *words)
    harness.wait_for(lambda: (desk.cache / "admin.sock").exists(), 10, "the daemon to start")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) != 0
    harness.wait_for(lambda: not desk.daemons(), 5, "the daemon to end")
    desk.check_clean()


def test_ctrl_c_at_any_moment_of_a_mount_leaves_no_dead_one(desk, sim):
    """A command that ended between mount(2) and the daemon's answer left a mount point that said ENOTCONN."""
    moments = random.Random(7)
    outcomes = set()
    for _ in range(24):
        process = desk.start("mount", "s3://tables", desk.mnt, "--cache", desk.cache, "--endpoint", sim.url)
        time.sleep(moments.uniform(0, 0.25) * harness.SLOW)
        process.send_signal(signal.SIGINT)
        outcomes.add(process.wait(20 * harness.SLOW))
        if harness.is_mounted(desk.mnt):
            os.listdir(desk.mnt)
            desk.umount()
    harness.wait_for(lambda: not desk.daemons(), 15, "the daemon to end")
    assert len(outcomes) > 1, f"each of them ended with {outcomes}"
    desk.check_clean()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """name -> (certificate, key): self-signed, for another host and for this one."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command")
    folder = tmp_path_factory.mktemp("tls")
    made = {}
    for name, alternative in (("other", "DNS:other.example"), ("here", "DNS:localhost,IP:127.0.0.1")):
        made[name] = folder / f"{name}.pem", folder / f"{name}.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        f"/CN={name}.example", "-addext", f"subjectAltName={alternative}", "-out", made[name][0], "-keyout", made[name][1]],
                       check=True, capture_output=True)
    return made


class TlsSim(harness.Sim):
    def __init__(self, thermo, certificate, key, folder):
        super().__init__(thermo, folder, "--tls-cert", certificate, "--tls-key", key)
        self.url = self.url.replace("http:", "https:")


def test_tls(desk, thermo, certificates, tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/f").write_text("safe")
    other, here = certificates["other"], certificates["here"]
    with TlsSim(thermo, *other, tmp_path) as server:
        where = f"127.0.0.1:{server.port}"
        desk.refused_mount("s3://tables", "--endpoint", server.url, "--ca-bundle", other[0],
                           says=[f"no safe connection to {server.url}", f"the certificate of {where} is for another name", "use the name in the certificate"])
        desk.refused_mount("s3://tables", "--endpoint", server.url, says=[f"the certificate of {where} is not trusted", "--ca-bundle FILE"])
        desk.mount("s3://tables", "--endpoint", server.url, "--no-verify-tls")
        assert (desk.mnt / "f").read_text() == "safe"
        desk.umount()
    with TlsSim(thermo, *here, tmp_path) as server:
        desk.refused_mount("s3://tables", "--endpoint", server.url, "--ca-bundle", "none.pem", says=["CA file cannot be read", "none.pem", "--ca-bundle"])
        desk.refused_mount("s3://tables", "--endpoint", server.url.replace("https", "http"), says=["does not answer", "write https:// in --endpoint"])
        shutil.copy(here[0], desk.folder / "ca.pem")
        desk.mount("s3://tables", "--endpoint", server.url, "--ca-bundle", "ca.pem")
        assert (desk.mnt / "f").read_text() == "safe"
        desk.umount()


def test_https_endpoint_that_speaks_http(desk):
    with Stub(400) as server:
        url = server.url.replace("http", "https")
        desk.refused_mount("s3://tables", "--endpoint", url, says=["does not speak TLS", "write http:// in --endpoint"])


@pytest.mark.parametrize("endpoint", ["127.0.0.1:9000", "ftp://127.0.0.1", "/srv/x"])
def test_an_endpoint_that_is_no_url(desk, endpoint):
    desk.refused_mount("s3://tables", "--endpoint", endpoint, says=[f"endpoint '{endpoint}'", "begin with http:// or https://"])


def test_no_such_folder_as_a_store(desk):
    desk.refused_mount(f"file://{desk.folder}/none", says=[f"'{desk.folder}/none' is not an existing folder", "make it first or correct the path"])


# The mount point

def test_mount_point_missing_or_no_folder(desk, tmp_path):
    desk.refused("mount", f"file://{tmp_path}", "none/deep", "--cache", desk.cache,
                 says="mount point 'none/deep' does not exist; make it with mkdir -p none/deep")
    (desk.folder / "file").touch()
    for name in ("file", "file/below"):
        desk.refused("mount", f"file://{tmp_path}", name, "--cache", desk.cache, says=["mount point '", "is not a folder; give an empty folder"])
    assert not desk.cache.exists(), "found out before a daemon was started"


def test_mount_point_not_empty(desk, tmp_path):
    (tmp_path / "f").write_text("x")
    (desk.mnt / "precious").touch()
    desk.refused_mount(f"file://{tmp_path}", says=[f"mount point '{desk.mnt}' is not empty", "give an empty folder, or -o nonempty to cover what is in it"])
    desk.mount(f"file://{tmp_path}", "-o", "nonempty")
    assert os.listdir(desk.mnt) == ["f"]
    desk.umount()
    assert os.listdir(desk.mnt) == ["precious"]


def test_mount_point_taken(desk, tmp_path):
    (tmp_path / "f").write_text("first")
    desk.mount(f"file://{tmp_path}")
    for other in (desk.cache, desk.folder / "other-cache"):
        result = desk.run("mount", f"file://{tmp_path}", "mnt/", "--cache", other)
        assert result.returncode == 1
        assert f"mount point '{desk.mnt}' is taken: 'file://{tmp_path}' (type fuse.thermo) is mounted there; run `thermo umount {desk.mnt}`" in result.stderr
        assert (desk.mnt / "f").read_text() == "first", "the first mount is untouched"
    assert len(desk.daemons()) == 1
    desk.umount()
    desk.check_clean()


def test_mount_points_by_every_kind_of_path(desk, tmp_path):
    (tmp_path / "f").write_text("x")
    (desk.folder / "with space").mkdir()
    (desk.folder / "link").symlink_to("with space")
    for given, undo in (("mnt", "./mnt/"), ("link", "with space"), ("./with space/", "link"), (desk.folder / "mnt" / ".." / "mnt", desk.mnt)):
        desk.done("mount", f"file://{tmp_path}", given, "--cache", "cache")
        assert (desk.folder / given / "f").read_text() == "x"
        desk.done("umount", undo)
        desk.check_clean()


# The cache folder

def test_cache_folder_that_cannot_be_written(desk, tmp_path):
    with tmpfs(desk.folder / "disk", "ro") as disk:
        for cache in (disk, disk / "below"):
            result = desk.run("mount", f"file://{tmp_path}", desk.mnt, "--cache", cache)
            assert result.returncode == 1 and f"cache folder '{cache}'" in result.stderr and "another with --cache" in result.stderr, result.stderr
            assert "Read-only file system" in result.stderr and not desk.daemons()
    (desk.folder / "file").touch()
    desk.refused("mount", f"file://{tmp_path}", desk.mnt, "--cache", "file", says=[f"cache folder '{desk.folder}/file'", "is not a folder", "--cache"])


def test_cache_folder_of_another_version(desk, tmp_path):
    desk.cache.mkdir()
    (desk.cache / "FORMAT").write_text("thermocline-cache 99\n")
    desk.refused_mount(f"file://{tmp_path}", says=[f"cache folder '{desk.cache}' has format '99'", "another folder with --cache", "empty this one (it holds only copies)"])
    assert (desk.cache / "FORMAT").read_text() == "thermocline-cache 99\n"
    shutil.rmtree(desk.cache)
    desk.mount(f"file://{tmp_path}")


def test_log_and_metrics_that_cannot_be(desk, tmp_path):
    desk.refused_mount(f"file://{tmp_path}", "--log", "/proc/none/log", says=["cannot log to '/proc/none/log'", "give --log stderr, syslog or a file that can be written"])
    with Stub(200) as server:
        port = server.server_address[1]
        desk.refused_mount(f"file://{tmp_path}", "--metrics", f"127.0.0.1:{port}", says=[f"metrics page on 127.0.0.1:{port}", "the port is taken; choose another"])


# The config file

CONFIGS = [
    ('[cache]\nsise = "10GiB"\n', "c.toml:2: unknown key 'cache.sise'; did you mean 'cache.size'?"),
    ('[mount]\n\nttl = "60 sec"\n', "c.toml:3: mount.ttl: '60 sec' is not a time to believe names for; write immutable, strict or a duration with its unit such as 60s"),
    ('[cache]\nsize = "10GX"\n', "c.toml:2: cache.size: '10GX' is not a size; write a number and one of B, KB,"),
    ("[mount]\nttl = 60\n", "c.toml:2: mount.ttl: '60' is not a time"),
    ('[cache]\nmemory = "1MiB"\n', "c.toml:2: cache.memory: '1MiB' is too little to work with; give at least 16MiB"),
    ("[mount]\nfile-mode = 0o644\n", 'c.toml:2: mount.file-mode takes octal digits in quotes, such as "0644"'),
    ('ttl = "60s"\n', "c.toml:1: unknown key 'ttl'; write it as 'mount.ttl', below [mount]"),
    ('[moun]\nttl = "60s"\n', "c.toml:2: unknown key 'moun.ttl'; did you mean 'mount.ttl'?"),
    ('[store]\nno-sign-request = "yes"\n', "c.toml:2: store.no-sign-request takes true or false, without quotes"),
    ("[log]\nlevel = true\n", "c.toml:2: log.level takes LEVEL, not true or false"),
    ("[mount]\nuid = 1.5\n", "c.toml:2: mount.uid takes USER in quotes"),
    ('[mount]\noptions = ["ro", 7]\n', "c.toml:2: mount.options takes a list of strings"),
    ('[mount]\nuid = "nobody-at-all"\n', "c.toml:2: mount.uid: there is no user 'nobody-at-all' on this machine"),
    ("[mount\nttl = 1\n", "c.toml:1: "),
    ('[mount]\nttl = "1s"\nttl = "2s"\n', "c.toml:3: "),
]


@pytest.mark.parametrize("text,says", CONFIGS, ids=[says[8:50] for _, says in CONFIGS])
def test_config_mistakes_name_line_and_mend(desk, text, says):
    (desk.folder / "c.toml").write_text(text)
    desk.refused_mount("s3://tables", "--config", "c.toml", code=2, says=says)


def test_config_file_missing(desk):
    desk.refused_mount("s3://tables", "--config", "none.toml", code=2, says="there is no config file 'none.toml'")


# goofys' command line

ACCEPTED = [
    "--uid 9001 --gid 9003 --debug_fuse --debug_s3", "-o ro,allow_other", "-o=ro", "-uid=9001", "--file-mode 0444 --dir-mode=0555", "--profile mine",
    "--endpoint http://127.0.0.1:9000", "--region eu-west-1", "--requester-pays", "--subdomain", "--stat-cache-ttl 1m0s", "--type-cache-ttl 1.5h",
    "--stat-cache-ttl 0", "--http-timeout 30s", "-f", "--f=false", "--debug_s3=true --debug_fuse=false", "--cache /srv/cache",
]
NOTED = ["--cheap", "--no-implicit-dir", "--storage-class STANDARD_IA", "--use-content-type", "--sse", "--sse-kms key-id", "--acl private",
         "--cache=--free:10%:/srv/cache"]
REFUSED = [
    ("--sse-c a2V5", "--sse-c: reading with a customer key is not supported; store the objects with SSE-KMS"),
    ("--iam", "--iam: keys of an instance role are not fetched; put them into the environment"),
    ("--stat-cache-ttl 60", "--stat-cache-ttl: '60' is not a duration; write a number and one of ms, s, m, h, such as 1m30s"),
    ("--http-timeout soon", "--http-timeout: 'soon' is not a duration"),
    ("--cheep", "unknown flag '--cheep'; did you mean '--cheap'?"),
    ("--debug-everything", "unknown flag '--debug-everything'"),
    ("--uid", "need a bucket and a mount point, got 'none'"),
    ("--uid dbquery", "--uid: there is no user 'dbquery'"),
    ("--cheap=maybe", "--cheap=maybe: 'maybe' is not true or false"),
]


@pytest.mark.parametrize("flags", ACCEPTED + NOTED)
def test_goofys_flags_are_understood(desk, flags):
    """Everything up to the mount point, which is missing: so that the call ends there."""
    result = desk.run(*flags.split(), "my-bucket:some/prefix", "none", "--cache", desk.cache) if "--cache" not in flags else \
        desk.run(*flags.split(), "my-bucket", "none")
    assert result.returncode == 1 and "mount point 'none' does not exist" in result.stderr, result.stderr
    notes = [line for line in result.stderr.splitlines() if line.startswith("thermo: note: ")]
    assert len(notes) == (1 if flags in NOTED else 0), result.stderr
    if notes:
        assert flags.split()[0].split("=")[0] in notes[0], "it names the flag"


@pytest.mark.parametrize("flags,says", REFUSED, ids=[flags for flags, _ in REFUSED])
def test_goofys_flags_that_are_refused(desk, flags, says):
    desk.refused(*flags.split(), "my-bucket", "none", code=2, says=says)


def show(path):
    info = os.stat(path)
    return info.st_uid, info.st_gid, oct(info.st_mode & 0o7777)


def test_goofys_form_word_for_word(desk, shop):
    desk.env |= {"AWS_ENDPOINT_URL": shop.url}
    config = desk.home / ".config/thermo/thermo.toml"  # the line itself has no word for the cache
    config.parent.mkdir(parents=True)
    config.write_text(f'[cache]\npath = "{desk.cache}"\n')
    desk.done("--uid", "9001", "--gid", "9003", "--debug_fuse", "--debug_s3", "tables", desk.mnt)
    assert show(desk.mnt / "top") == (9001, 9003, "0o644") and show(desk.mnt / "quotes") == (9001, 9003, "0o755")
    assert " I fuse id=" in desk.log() and " I s3 id=" in desk.log()
    desk.umount()
    desk.check_clean()


def test_goofys_flags_do_what_they_say(desk, shop, thermo):
    (desk.home / ".aws").mkdir()
    (desk.home / ".aws/credentials").write_text("[mine]\naws_access_key_id = test\naws_secret_access_key = testtest\n")
    env = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    desk.done("--cache", desk.cache, "--profile", "mine", "--endpoint", shop.url, "--uid", "daemon", "--gid", "games", "--file-mode", "0440", "--dir-mode=0550",
              "--type-cache-ttl", "1m", "--stat-cache-ttl", "1s", "-o", "ro,allow_other,noexec", "tables:quotes", desk.mnt, env=env)
    import grp
    import pwd
    uid, gid = pwd.getpwnam("daemon").pw_uid, grp.getgrnam("games").gr_gid
    assert show(desk.mnt) == (uid, gid, "0o550") and show(desk.mnt / "2024-01-01/part") == (uid, gid, "0o440")
    mounted, = [line for line in open("/proc/mounts") if f" {desk.mnt} " in line]
    assert mounted.startswith("s3://tables/quotes ") and {"ro", "noexec", "nosuid", "nodev", "allow_other"} <= set(mounted.split()[3].split(","))
    # The smaller one of the two lifetimes holds.
    shop.client().put_object(Bucket="tables", Key="quotes/2024-01-03/part", Body=b"new")
    try:
        harness.wait_for(lambda: (desk.mnt / "2024-01-03/part").exists(), 5, "the new date")
    finally:
        shop.client().delete_object(Bucket="tables", Key="quotes/2024-01-03/part")
    desk.umount()
    desk.check_clean()


def test_fstab_forms(desk, shop):
    """What mount(8) runs for a line of type `fuse` in goofys' form and of type `thermo`."""
    (desk.folder / "mount.thermo").symlink_to(desk.thermo)
    options = f"rw,dev,suid,_netdev,allow_other,--uid=9001,--file-mode=0600,endpoint={shop.url},cache={desk.cache}"
    helper = [str(desk.folder / "mount.thermo"), "tables:quotes", str(desk.mnt), "-o", options]
    result = subprocess.run(helper, env=desk.env, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert show(desk.mnt / "2024-01-01/part")[::2] == (9001, "0o600")
    desk.umount()
    assert subprocess.run([*helper, "-s", "-f"], env=desk.env, timeout=60).returncode == 0
    desk.check_clean()
    fuse = shutil.which("mount.fuse3") or shutil.which("mount.fuse3", path="/sbin:/usr/sbin")
    if fuse is None:
        pytest.skip("mount.fuse3 is not installed")
    (desk.folder / "thermo").symlink_to(desk.thermo)
    subprocess.run([fuse, "thermo#tables", str(desk.mnt), "-o", f"--uid=7,--endpoint={shop.url},--cache={desk.cache},ro"],
                   env=desk.env | {"PATH": f"{desk.folder}:{desk.env['PATH']}"}, check=True, timeout=60)
    assert (desk.mnt / "top").read_text() == "hello" and show(desk.mnt / "top")[0] == 7
    desk.umount()
    desk.check_clean()


def test_rw_is_answered_honestly(desk, tmp_path):
    (tmp_path / "f").write_text("x")
    assert "note: -o rw: this release mounts read-only" in desk.mount(f"file://{tmp_path}", "-o", "rw").stderr
    assert not os.access(desk.mnt / "f", os.W_OK)
    mounted, = [line for line in open("/proc/mounts") if f" {desk.mnt} " in line]
    assert mounted.split()[3].startswith("ro,")


def test_endpoint_down(calls_to_endpoints_that_are_down, shop):
    """None of them is taken for an empty bucket, each ends in time, and the mount point is as good as before."""
    for desk, call, began, says in calls_to_endpoints_that_are_down:
        out, err = call.communicate(timeout=max(1, began + 30 * harness.SLOW - time.monotonic()))
        assert call.returncode == 1 and err.startswith("thermo: ") and len(err.splitlines()) == 1, err
        assert all(text in err for text in says), err
        assert desk.log().count(" serves the cache ") == 1, "its answer was taken for what it is, not for the daemon's end"
        desk.check_clean()
    desk.mount("s3://tables", "--endpoint", shop.url)
    assert (desk.mnt / "top").read_text() == "hello"
