"""A place to call `thermo` as a user does: a folder of its own with mount point, cache and home; says what was left behind."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import harness

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "testtest", "AWS_REGION": "us-east-1"}


class Desk:
    def __init__(self, thermo):
        self.thermo = str(thermo)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="thermo_desk_"))
        self.folder.chmod(0o755)
        self.mnt, self.cache, self.home = (self.folder / name for name in ("mnt", "cache", "home"))
        self.mnt.mkdir()
        self.home.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "XDG_"))}
        self.env = kept | KEYS | {"HOME": str(self.home)}

    def command(self, *words):
        return [self.thermo, *map(str, words)]

    def run(self, *words, env=None, timeout=60, **named):
        return subprocess.run(self.command(*words), env=self.env | (env or {}), capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=timeout * harness.SLOW, cwd=self.folder, **named)

    def start(self, *words, env=None, **named):
        named = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | named
        return subprocess.Popen(self.command(*words), env=self.env | (env or {}), stdin=subprocess.DEVNULL, cwd=self.folder, **named)

    def done(self, *words, **named):
        """Runs what must succeed."""
        result = self.run(*words, **named)
        assert result.returncode == 0, f"thermo {' '.join(map(str, words))}: {result.stdout}{result.stderr}{self.log()}"
        return result

    def json(self, *words):
        return json.loads(self.done(*words, "--json").stdout)

    def mount(self, store, *words, **named):
        return self.done("mount", store, self.mnt, "--cache", self.cache, *words, **named)

    def umount(self):
        return self.done("umount", self.mnt)

    def refused(self, *words, code=1, says=(), **named):
        """Runs what must fail with one sentence that holds every text of `says`, and leave nothing behind."""
        result = self.run(*words, **named)
        assert result.returncode == code, f"exit code {result.returncode}: {result.stdout}{result.stderr}"
        assert result.stdout == ""
        sentences = [line for line in result.stderr.splitlines() if not line.startswith("thermo: note: ")]
        assert len(sentences) == 1 and sentences[0].startswith("thermo: "), result.stderr
        for text in [says] if isinstance(says, str) else says:
            assert str(text) in sentences[0], f"{text!r} is not in {sentences[0]!r}"
        self.check_clean()
        return sentences[0]

    def refused_mount(self, store, *words, **named):
        return self.refused("mount", store, self.mnt, "--cache", self.cache, *words, **named)

    def daemons(self):
        """Process ids of the daemons whose command line names this desk."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and str(self.folder).encode() in (entry / "cmdline").read_bytes():
                    if not harness.Mount._is_zombie(entry.name):
                        found.append(int(entry.name))
        return found

    def check_clean(self):
        """Nothing mounted, nothing running, and the mount point can be used."""
        assert not [line for line in open("/proc/self/mountinfo") if f"{self.folder}/" in line]
        assert not self.daemons()
        if self.mnt.exists():
            (self.mnt / "probe").touch()
            (self.mnt / "probe").unlink()

    def pid(self):
        return int((self.cache / "lock").read_text())

    def log(self):
        path = self.cache / "thermo.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def kill(self):
        pid = self.pid()
        os.kill(pid, signal.SIGKILL)
        harness.wait_for(lambda: harness.Mount._is_zombie(pid), 10, "the daemon to die")

    def close(self):
        mounts = [line.split()[4] for line in open("/proc/self/mountinfo") if f"{self.folder}/" in line]
        for path in reversed(mounts):
            harness.force_unmount(path.replace("\\040", " "))
        for pid in self.daemons():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            harness.wait_for(lambda: not self.daemons(), 10, "daemons to end")
        for pid in self.daemons():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
