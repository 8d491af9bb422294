"""Access keys from every place, rotation while mounted, and where secrets must never be found."""
import contextlib
import errno
import hashlib
import http.client
import http.server
import os
import re
import subprocess
import sys
import threading
import time

import harness
import pytest

KEY, SECRET = "AKIDFIRSTKEY0000001", "first/secret+with=signs0000000000000000"
KEY2, SECRET2 = "AKIDSECONDKEY000002", "second/secret+with=signs000000000000000"
TOKEN, TOKEN2 = "first/session+token==" * 8, "second/session+token==" * 8


def no_keys(**variables):
    """An environment without the keys that other tests have, and with `variables`."""
    return {**dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_PROFILE")), **variables}


class Gate:
    """Stands before an s3sim: knows which key and token a request came with, and refuses those that were revoked."""

    REFUSALS = {"expired": (400, "ExpiredToken"), "unknown": (403, "InvalidAccessKeyId"), "denied": (403, "AccessDenied"),
                "signature": (403, "SignatureDoesNotMatch"), "token": (400, "InvalidToken")}

    def __init__(self, upstream_port):
        self.lock = threading.Lock()
        self.seen = []  # (key or None, token or None, refused)
        self.revoked = {}  # key -> kind of refusal
        self.tokens = {}  # key -> the token it needs
        gate = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *unused):
                pass

            def do_GET(self):
                found = re.search(r"Credential=([^/]+)/", self.headers.get("Authorization", ""))
                key, token = found and found.group(1), self.headers.get("x-amz-security-token")
                with gate.lock:
                    kind = gate.revoked.get(key)
                    if kind is None and key in gate.tokens and token != gate.tokens[key]:
                        kind = "token"
                    gate.seen.append((key, token, kind))
                if kind:
                    status, code = gate.REFUSALS[kind]
                    return self.answer(status, {"Content-Type": "application/xml"},
                                       f"<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>refused by the gate</Message></Error>".encode())
                if not hasattr(self, "upstream"):
                    self.upstream = http.client.HTTPConnection("127.0.0.1", upstream_port, timeout=60)
                self.upstream.putrequest("GET", self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    self.upstream.putheader(name, value)
                self.upstream.endheaders()
                answer = self.upstream.getresponse()
                self.answer(answer.status, {n: v for n, v in answer.getheaders() if n.lower() not in ("transfer-encoding", "connection")},
                            answer.read())

            def answer(self, status, headers, body):
                self.send_response_only(status)
                for name, value in headers.items():
                    if name.lower() != "content-length":
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(body)

            def finish(self):
                if hasattr(self, "upstream"):
                    self.upstream.close()
                with contextlib.suppress(ConnectionError):
                    super().finish()

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def keys(self, since=0):
        with self.lock:
            return {key for key, _, _ in self.seen[since:]}

    def tokens_of(self, key):
        with self.lock:
            return {token for k, token, _ in self.seen if k == key}

    def count(self):
        with self.lock:
            return len(self.seen)

    def refused(self):
        with self.lock:
            return sum(kind is not None for _, _, kind in self.seen)

    def revoke(self, key, kind):
        with self.lock:
            self.revoked[key] = kind

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)


@pytest.fixture(scope="module")
def signed(thermo):
    """An s3sim that checks signatures against two keys, for one region."""
    with harness.Sim(thermo, "--memory", "--region", "eu-west-1", "--access-key", f"{KEY}:{SECRET}", "--access-key", f"{KEY2}:{SECRET2}") as server:
        client = server.client(key=KEY, secret=SECRET, region="eu-west-1")
        client.create_bucket(Bucket="tables")
        for n in range(40):
            client.put_object(Bucket="tables", Key=f"d{n}/f", Body=body(n))
        client.put_object(Bucket="tables", Key="big", Body=body(7, 24 << 20))
        yield server


def body(seed, size=70_000):
    import random

    return random.Random(seed).randbytes(size)


@pytest.fixture
def gate(signed):
    server = Gate(signed.port)
    yield server
    server.close()


def write(path, text):
    """As credential helpers do: a new file, renamed over the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text)
    fresh.chmod(0o600)
    fresh.rename(path)


def section(name, key, secret, token=None, **settings):
    values = {"aws_access_key_id": key, "aws_secret_access_key": secret, **({"aws_session_token": token} if token else {}), **settings}
    return f"[{name}]\n" + "".join(f"{k} = {v}\n" for k, v in values.items())


def test_environment_with_a_session_token(gate, mounts):
    gate.tokens[KEY] = TOKEN
    mount = mounts("s3://tables", endpoint=gate.url, env=no_keys(
        AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET, AWS_SESSION_TOKEN=TOKEN, AWS_DEFAULT_REGION="eu-west-1"))
    assert (mount / "d1/f").read_bytes() == body(1)
    assert gate.keys() == {KEY} and gate.tokens_of(KEY) == {TOKEN}
    assert gate.refused() == 0


@pytest.mark.parametrize("where", ["credentials", "config", "home", "home-config", "relative", "tilde"])
def test_files(gate, mounts, tmp_path, where, monkeypatch):
    """Each place a profile can stand in, with its region and token; no --region, no --endpoint."""
    gate.tokens[KEY] = TOKEN
    env = no_keys(HOME=str(tmp_path))
    keys = dict(key=KEY, secret=SECRET, token=TOKEN)
    settings = dict(region="eu-west-1", endpoint_url=gate.url)
    flags = ["--profile", "trader"]
    other = section("other", "AKIDOTHER", "no")
    if where == "credentials":
        write(tmp_path / "elsewhere/keys", other + section("trader", **keys) + other)
        write(tmp_path / "elsewhere/conf", "[profile trader]\n" + "".join(f"{k}={v}\n" for k, v in settings.items()))
        env |= {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "elsewhere/keys"), "AWS_CONFIG_FILE": str(tmp_path / "elsewhere/conf")}
    elif where == "config":
        write(tmp_path / "elsewhere/conf", section("profile trader", **keys, **settings))
        env |= {"AWS_CONFIG_FILE": str(tmp_path / "elsewhere/conf"), "AWS_PROFILE": "trader"}
        flags = []
    elif where == "home":
        write(tmp_path / ".aws/credentials", section("trader", **keys) + other)
        write(tmp_path / ".aws/config", "# comment\n[profile trader]\n" + "".join(f"{k} = {v}\n" for k, v in settings.items()))
    elif where == "home-config":
        write(tmp_path / ".aws/config", section("default", **keys, **settings))
        flags = []
    elif where == "relative":
        # The daemon has another working folder than who mounts.
        write(tmp_path / "keys", section("trader", **keys))
        write(tmp_path / "conf", "[profile trader]\n" + "".join(f"{k} = {v}\n" for k, v in settings.items()))
        monkeypatch.chdir(tmp_path)
        env |= {"AWS_SHARED_CREDENTIALS_FILE": "keys", "AWS_CONFIG_FILE": "./conf"}
    else:
        write(tmp_path / "my keys", section("trader", **keys, **settings))
        env |= {"AWS_SHARED_CREDENTIALS_FILE": "~/my keys"}
    mount = mounts("s3://tables", *flags, env=env)
    assert (mount / "d2/f").read_bytes() == body(2)
    assert gate.keys() == {KEY} and gate.tokens_of(KEY) == {TOKEN} and gate.refused() == 0


def test_a_named_profile_stands_above_the_environment(gate, mounts, tmp_path):
    write(tmp_path / "keys", section("trader", KEY2, SECRET2))
    env = no_keys(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET, AWS_REGION="eu-west-1",
                  AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "keys"))
    mount = mounts("s3://tables", "--profile", "trader", endpoint=gate.url, env=env)
    assert (mount / "d3/f").read_bytes() == body(3)
    assert gate.keys() == {KEY2}


def test_flags_stand_above_all_and_are_not_shown(gate, mounts, thermo, tmp_path):
    gate.tokens[KEY] = TOKEN
    flags = ["--access-key-id", KEY, "--secret-access-key", SECRET, "--session-token", TOKEN]
    env = no_keys(AWS_ACCESS_KEY_ID=KEY2, AWS_SECRET_ACCESS_KEY=SECRET2, AWS_REGION="eu-west-1")
    mount = mounts("s3://tables", *flags, "--debug_s3", endpoint=gate.url, env=env)
    assert (mount / "d3/f").read_bytes() == body(3)
    assert gate.keys() == {KEY} and gate.tokens_of(KEY) == {TOKEN}
    config = tmp_path / "thermo.toml"
    config.write_text(f'[store]\nsecret-access-key = "{SECRET}"\nsession-token = "{TOKEN}"\n')
    said = [mount.log(), mount.run("status", mount.path, "--json").stdout, open(f"/proc/{mount.pid()}/cmdline").read(),
            subprocess.run([thermo, "config", "--config", str(config)], capture_output=True, text=True, check=True).stdout]
    assert "secret-access-key" in said[-1]
    assert not any(secret in text for text in said for secret in (SECRET, TOKEN))


@pytest.mark.parametrize("form", ["goofys", "flags on both sides"])
def test_forms_of_the_command_line(gate, thermo, mounts, tmp_path, form):
    write(tmp_path / ".aws/credentials", section("trader", KEY, SECRET, region="eu-west-1"))
    mount = mounts("s3://tables", env=no_keys(HOME=str(tmp_path)), expect_failure=True)
    cache = ["-o", f"cache={mount.cache}"]
    if form == "goofys":
        command = [thermo, "--profile", "trader", "--endpoint", gate.url, "--region", "eu-west-1", *cache, "tables", str(mount.path)]
    else:
        command = [thermo, "mount", "--endpoint", gate.url, "--profile", "trader", "s3://tables", str(mount.path), *cache,
                   "--region", "eu-west-1"]
    result = subprocess.run(command, env=mount.env, capture_output=True, text=True, timeout=60 * harness.SLOW, stdin=subprocess.DEVNULL)
    assert result.returncode == 0, result.stderr
    assert (mount / "d4/f").read_bytes() == body(4)
    assert gate.keys() == {KEY}


def test_anonymous(thermo, mounts, tmp_path):
    with harness.Sim(thermo, "--memory") as public:
        public.client().create_bucket(Bucket="tables")
        public.client().put_object(Bucket="tables", Key="f", Body=b"public")
        gate = Gate(public.port)
        try:
            # Keys that are there too are not sent.
            mount = mounts("s3://tables", "--no-sign-request", endpoint=gate.url)
            assert (mount / "f").read_bytes() == b"public"
            assert gate.keys() == {None}
        finally:
            gate.close()


@pytest.mark.parametrize("case, words", [
    ("nothing", ["no access keys found", "AWS_ACCESS_KEY_ID", ".aws/credentials", ".aws/config", "--no-sign-request"]),
    ("no such profile", ["no profile 'trader'", "'analyst'"]),
    ("half a key", ["only one of"]),
    ("wrong secret", ["refuses access", "environment"]),
    ("unknown key", ["refuses access", "environment"]),
    ("anonymous at a private bucket", ["refuses access"]),
    ("expired", ["has expired", "profile 'trader'"]),
    ("role", ["role_arn", "not support"]),
])
def test_what_is_wrong_is_said_at_mount(gate, mounts, tmp_path, case, words):
    env = no_keys(HOME=str(tmp_path), AWS_REGION="eu-west-1")
    flags = []
    if case == "no such profile":
        write(tmp_path / ".aws/credentials", section("analyst", KEY, SECRET))
        flags = ["--profile", "trader"]
    elif case == "half a key":
        env["AWS_ACCESS_KEY_ID"] = KEY
    elif case == "wrong secret":
        env |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": "wrongsecretwrongsecret"}
    elif case == "unknown key":
        env |= {"AWS_ACCESS_KEY_ID": "AKIDUNKNOWN", "AWS_SECRET_ACCESS_KEY": SECRET}
    elif case == "anonymous at a private bucket":
        flags = ["--no-sign-request"]
    elif case == "expired":
        write(tmp_path / ".aws/credentials", section("trader", KEY, SECRET, TOKEN))
        flags = ["--profile", "trader"]
        gate.revoke(KEY, "expired")
    elif case == "role":
        write(tmp_path / ".aws/config", "[profile trader]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = default\n")
        flags = ["--profile", "trader"]
    mount = mounts("s3://tables", *flags, endpoint=gate.url, env=env, expect_failure=True)
    result = mount.try_start()
    assert result.returncode != 0
    for word in words:
        assert word in result.stderr, result.stderr
    assert SECRET not in result.stderr and "wrongsecretwrongsecret" not in result.stderr and TOKEN not in result.stderr
    assert not os.path.ismount(mount.path)
    harness.wait_for(lambda: mount.pid() == 0, 20, "a daemon without mounts to end")


@pytest.mark.parametrize("kind", ["expired", "unknown", "denied", "signature", "token"])
def test_rotated_while_mounted(gate, mounts, tmp_path, kind):
    """New keys are in the file before the old ones are refused: no reader sees an error, whatever the refusal is called."""
    keys = tmp_path / "keys"
    write(keys, section("default", KEY, SECRET, TOKEN))
    mount = mounts("s3://tables", "--region", "eu-west-1", "--timeout", "10s", endpoint=gate.url,
                   env=no_keys(AWS_SHARED_CREDENTIALS_FILE=str(keys)))
    assert (mount / "d1/f").read_bytes() == body(1)
    assert gate.tokens_of(KEY) == {TOKEN}
    write(keys, section("default", KEY2, SECRET2, TOKEN2))
    gate.revoke(KEY, kind)
    since = gate.count()
    started = time.monotonic()
    for n in range(2, 12):
        assert (mount / f"d{n}/f").read_bytes() == body(n)
    assert time.monotonic() - started < 5 * harness.SLOW
    assert KEY2 in gate.keys(since) and gate.tokens_of(KEY2) == {TOKEN2}, "the token belongs to its key"
    settled = gate.count()
    for n in range(12, 20):
        assert (mount / f"d{n}/f").read_bytes() == body(n)
    assert gate.keys(settled) == {KEY2}, "the old keys are not tried again"


def test_new_keys_come_late(gate, mounts, tmp_path):
    """Between the refusal and the new keys: EACCES at once, never ENOENT; what is cached is read; afterwards all goes on by itself."""
    keys = tmp_path / "keys"
    write(keys, section("default", KEY, SECRET))
    mount = mounts("s3://tables", "--region", "eu-west-1", "--ttl", "1s", endpoint=gate.url,
                   env=no_keys(AWS_SHARED_CREDENTIALS_FILE=str(keys)))
    assert (mount / "d1/f").read_bytes() == body(1)
    with open(mount / "d1/f", "rb") as cached:
        gate.revoke(KEY, "expired")
        keys.write_text("[default]\naws_access_key_id = AKI")  # a writer that stops half way
        time.sleep(1.1)
        for name in ("d2/f", "no/such/name"):
            started = time.monotonic()
            with pytest.raises(OSError) as caught:
                (mount / name).read_bytes()
            assert caught.value.errno == errno.EACCES, caught.value
            assert time.monotonic() - started < 5 * harness.SLOW
        assert cached.read() == body(1)
    write(keys, section("default", KEY2, SECRET2))
    for n in range(1, 6):
        assert (mount / f"d{n}/f").read_bytes() == body(n)
    assert not (mount / "no/such/name").exists()


READ_ALL = """
import hashlib, os, sys
rounds = set()
while not os.path.exists(sys.argv[1]) or not rounds:
    sums = []
    for path in sys.argv[2:]:
        with open(path, "rb", buffering=0) as f:
            whole = hashlib.sha256()
            while part := f.read(100_000):
                whole.update(part)
            sums.append(whole.hexdigest())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # the kernel must not answer for the store
    rounds.add("".join(sums))
print(*rounds)
"""


def test_rotation_in_the_middle_of_parallel_reads(gate, mounts, signed, tmp_path):
    """Rotations, one after the other, while eight programs read: every byte right, no error."""
    keys, stop = tmp_path / "keys", tmp_path / "stop"
    pairs = [(KEY, SECRET), (KEY2, SECRET2)]
    write(keys, section("default", *pairs[0]))
    mount = mounts("s3://tables", "--region", "eu-west-1", endpoint=gate.url,
                   env=no_keys(AWS_SHARED_CREDENTIALS_FILE=str(keys)))
    sums = {"big": hashlib.sha256(body(7, 24 << 20)).hexdigest()} | {f"d{n}/f": hashlib.sha256(body(n)).hexdigest() for n in range(40)}
    names = list(sums)
    signed.options(first_byte_ms=15, per_connection="30MB/s")
    try:
        orders = [names[n * 5:] + names[:n * 5] for n in range(8)]
        jobs = [subprocess.Popen([sys.executable, "-c", READ_ALL, str(stop), *(str(mount / name) for name in order)], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True) for order in orders]
        try:
            met, turn = set(), 0
            until = time.monotonic() + 30 * harness.SLOW
            while len(met) < 3 and time.monotonic() < until and all(job.poll() is None for job in jobs):
                time.sleep(0.25)
                mount.run("free", mount.path)  # there is always something left to fetch
                kind, before = ["expired", "unknown", "denied"][turn % 3], gate.refused()
                turn += 1
                write(keys, section("default", *pairs[turn % 2]))
                with gate.lock:
                    gate.revoked = {pairs[(turn + 1) % 2][0]: kind}
                time.sleep(0.25)
                met |= {kind} if gate.refused() > before else set()
            stop.touch()
            for order, job in zip(orders, jobs):
                out, err = job.communicate(timeout=60 * harness.SLOW)
                assert job.returncode == 0, err
                assert out.strip() == "".join(sums[name] for name in order)
        finally:
            for job in jobs:
                if job.poll() is None:
                    job.kill()
                job.wait(10)
    finally:
        signed.options(first_byte_ms=0, per_connection=0)
    assert len(met) == 3, f"each kind of refusal was met by a request under way, not only {met}"


@pytest.mark.parametrize("fault", ["expired=1@GET", "error403=1@GET"])
def test_a_refusal_is_not_remembered(sim, mounts, fault):
    """Keys without anything newer: reads fail with EACCES while the store refuses, and no longer."""
    for n in range(4):
        sim.client().put_object(Bucket="tables", Key=f"f{n}", Body=body(n))
    mount = mounts("s3://tables", endpoint=sim.url)
    assert sorted(os.listdir(mount.path)) == [f"f{n}" for n in range(4)]
    sim.faults(fault)
    for n in range(4):
        started = time.monotonic()
        with pytest.raises(OSError) as caught:
            (mount / f"f{n}").read_bytes()
        assert caught.value.errno == errno.EACCES
        assert time.monotonic() - started < 5 * harness.SLOW
    sim.faults("")
    assert [(mount / f"f{n}").read_bytes() for n in range(4)] == [body(n) for n in range(4)]


def test_the_environment_may_hold_any_bytes(sim, mounts):
    """What has nothing to do with keys does not stand in the way: variables are bytes, the daemon is asked in UTF-8."""
    sim.client().put_object(Bucket="tables", Key="f", Body=b"x")
    mount = mounts("s3://tables", endpoint=sim.url, env={"AWS_NOTE": os.fsdecode(b"caf\xe9 \xff")})
    assert (mount / "f").read_bytes() == b"x"


def test_mounts_of_one_daemon_keep_their_own_keys(gate, mounts, tmp_path):
    """One daemon, two users' profiles: each asks with his own keys, and keys that are refused give nothing of what the other has cached."""
    write(tmp_path / "keys", section("one", KEY, SECRET) + section("two", KEY2, SECRET2))
    env = no_keys(AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "keys"), AWS_REGION="eu-west-1")
    first = mounts("s3://tables", "--profile", "one", endpoint=gate.url, env=env)
    assert (first / "d1/f").read_bytes() == body(1)
    since = gate.count()
    second = mounts("s3://tables", "--profile", "two", endpoint=gate.url, env=env, cache=first.cache)
    assert second.pid() == first.pid() > 0
    assert (second / "d2/f").read_bytes() == body(2)
    assert gate.keys(since) == {KEY2}
    since = gate.count()
    assert (first / "d3/f").read_bytes() == body(3)
    assert gate.keys(since) == {KEY}
    gate.revoke(KEY2, "denied")
    third = mounts("s3://tables", "--profile", "two", endpoint=gate.url, env=env, cache=first.cache, expect_failure=True)
    assert third.try_start().returncode != 0
    assert (first / "d4/f").read_bytes() == body(4)


def test_secrets_are_nowhere(gate, mounts, tmp_path):
    """Neither in the log of every request, nor in what the daemon says about itself, nor on disk, nor on a command line."""
    keys = tmp_path / "keys"
    write(keys, section("default", KEY, SECRET, TOKEN))
    mount = mounts("s3://tables", "--debug_s3", "--debug_fuse", "--log-level", "debug", endpoint=gate.url,
                   env=no_keys(AWS_SHARED_CREDENTIALS_FILE=str(keys), AWS_REGION="eu-west-1"))
    assert (mount / "d1/f").read_bytes() == body(1)
    gate.revoke(KEY, "expired")
    with pytest.raises(OSError):
        (mount / "d2/f").read_bytes()
    write(keys, section("default", KEY2, SECRET2, TOKEN2))
    assert (mount / "d2/f").read_bytes() == body(2)
    log = (mount.cache / "thermo.log").read_text()
    assert "d1/f" in log, "requests are logged"
    said = [log, mount.run("status", mount.path, "--json").stdout, mount.run("stat", mount / "d1/f", "--json").stdout]
    said += [path.read_bytes().decode("latin-1") for path in mount.cache.rglob("*") if path.is_file()]
    said += [open(f"/proc/{mount.pid()}/cmdline").read()]
    for secret in (SECRET, SECRET2, TOKEN, TOKEN2):
        assert not any(secret in text or secret.replace("/", "%2F") in text for text in said)
    assert not any("Signature=" in text for text in said)
