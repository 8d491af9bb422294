"""The mount side of a field test: our own, or any other program that is named by FIELD_MOUNT_COMMAND. Both have the same few members:

path, ttl            where it is, and for how many seconds it believes names
expire()             waits until names have expired
read_only            whether writing is refused by the mount itself
pids()               the processes that serve it
start() unmount() kill() close()
log_lines()          how many lines it has logged
"""
import contextlib
import functools
import math
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

import harness

COMMAND = os.environ.get("FIELD_MOUNT_COMMAND", "")
LONG_TTL = 60
SHORT_TTL = float(os.environ.get("FIELD_TTL", "1" if COMMAND else "0.4"))


class Common:
    def expire(self):
        time.sleep(self.ttl + (0.6 if COMMAND else 0.2) * harness.SLOW)

    @functools.cached_property
    def read_only(self):
        try:
            os.mkdir(self.path / "field-write-probe")
        except OSError:
            return True
        os.rmdir(self.path / "field-write-probe")
        return False

    def __truediv__(self, name):
        return self.path / name


class OurMount(Common, harness.Mount):
    ours = True

    def __init__(self, thermo, store, *flags, url=None, ttl=SHORT_TTL, cache=None, env=None, prefix=""):
        self.ttl = ttl
        keys = {"AWS_ACCESS_KEY_ID": store.access_key, "AWS_SECRET_ACCESS_KEY": store.secret_key, "AWS_REGION": store.region}
        super().__init__(thermo, f"s3://{store.bucket}/{prefix}".rstrip("/"), "--ttl", f"{round(ttl * 1000)}ms", *flags,
                         endpoint=url or store.url, cache=cache, env={**keys, **(env or {})})

    def pids(self):
        pid = self.pid()
        return [pid] if pid else []

    def log_lines(self):
        path = self.cache / "thermo.log"
        return len(path.read_bytes().splitlines()) if path.exists() else 0


class OtherMount(Common):
    """A foreign program. It may stay in the foreground or go to the background: its processes are known by a variable that they inherit."""

    ours = False

    def __init__(self, store, url=None, ttl=SHORT_TTL, cache=None, env=None):
        self.ttl = ttl
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="field_mount_"))
        self.path, self.cache = self.folder / "mnt", pathlib.Path(cache or self.folder / "cache")
        self.path.mkdir()
        self.cache.mkdir(exist_ok=True)
        self.mark = uuid.uuid4().hex
        keys = {"AWS_ACCESS_KEY_ID": store.access_key, "AWS_SECRET_ACCESS_KEY": store.secret_key, "AWS_REGION": store.region}
        named = {**keys, "FIELD_MOUNT_ID": self.mark, **(env or {})}
        self.env = {name: value for name, value in {**os.environ, **named}.items() if value is not None}
        values = {"endpoint": url or store.url, "bucket": store.bucket, "mountpoint": self.path, "cache": self.cache, "ttl": math.ceil(ttl),
                  "region": store.region}
        self.command = [word.format(**values) for word in shlex.split(COMMAND)]
        self.start()

    def start(self):
        with open(self.folder / "log", "ab") as log:
            process = subprocess.Popen(self.command, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.process = process
        try:
            harness.wait_for(lambda: harness.is_mounted(self.path) or process.poll() not in (None, 0), 30, "the mount to appear")
            if not harness.is_mounted(self.path):
                raise RuntimeError(f"the mount command ended with {process.returncode}")
        except Exception as error:
            self.close(keep_folder=True)
            raise RuntimeError(f"{error}\n{' '.join(self.command)}\n{(self.folder / 'log').read_text(errors='replace')[-3000:]}") from error

    def pids(self):
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if f"FIELD_MOUNT_ID={self.mark}".encode() in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
        return found

    def kill(self):
        for pid in self.pids():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self._wait_for_the_end()
        harness.force_unmount(self.path)

    def unmount(self):
        subprocess.run(["umount", str(self.path)], check=True, timeout=60)
        self._wait_for_the_end()

    def remount(self):
        self.unmount()
        self.start()

    def log_lines(self):
        return len((self.folder / "log").read_bytes().splitlines())

    def _wait_for_the_end(self):
        def ended():
            self.process.poll()  # reaps it
            return not self.pids()

        harness.wait_for(ended, 30, "the mount program to end")

    def close(self, keep_folder=False):
        if harness.is_mounted(self.path):
            with contextlib.suppress(Exception):
                subprocess.run(["umount", str(self.path)], stderr=subprocess.DEVNULL, timeout=20)
        harness.force_unmount(self.path)
        with contextlib.suppress(TimeoutError):
            harness.wait_for(lambda: self.process.poll() is not None and not self.pids(), 3, "")
        for pid in self.pids():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        if not keep_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
