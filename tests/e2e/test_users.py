"""An ordinary user mounts, through fusermount3; what that user lacks is named with the command that mends it.

`nobody` plays the user. /dev/fuse is opened to everybody for the time of these tests, as it is on most machines.
"""
import grp
import os
import pathlib
import pwd
import shutil
import stat
import subprocess

import harness
import pytest
from desk import Desk

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="becoming an ordinary user needs root and setpriv")


@pytest.fixture(scope="module")
def open_device():
    device = pathlib.Path("/dev/fuse")
    before = stat.S_IMODE(device.stat().st_mode)
    device.chmod(0o666)
    yield
    device.chmod(before)


class UserDesk(Desk):
    """The desk of `nobody`: all of it belongs to that user, who runs every command on it."""

    def __init__(self, thermo):
        super().__init__(thermo)
        self.user = pwd.getpwnam("nobody")
        self.groups = "--clear-groups"
        # The program may lie where only root can go.
        shutil.copy(self.thermo, self.folder / "thermo")
        self.thermo = str(self.folder / "thermo")
        for path in (self.folder, self.mnt, self.home):
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def as_user(self, *words):
        return [shutil.which("setpriv"), f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}", self.groups, "--", *map(str, words)]

    def command(self, *words):
        return self.as_user(self.thermo, *words)

    def shell(self, *words):
        return subprocess.run(self.as_user(*words), capture_output=True, text=True, timeout=30 * harness.SLOW)


@pytest.fixture
def user(thermo, open_device):
    if shutil.which("fusermount3") is None:
        pytest.skip("fusermount3 is not installed")
    made = UserDesk(thermo)
    yield made
    made.close()


def privately(script, desk, **named):
    """Runs a shell script in a mount namespace of its own, whose mounts nobody else sees."""
    if shutil.which("unshare") is None:
        pytest.skip("needs the unshare command")
    result = subprocess.run(["unshare", "--mount", "--propagation", "private", "bash", "-ec", script], env=desk.env, capture_output=True, text=True,
                            timeout=60 * harness.SLOW, stdin=subprocess.DEVNULL, cwd=desk.folder, **named)
    return result


def test_a_user_mounts_reads_and_unmounts(user, shop):
    result = user.done("mount", "s3://tables", user.mnt, "--endpoint", shop.url)
    assert "note: mounted through fusermount3" in result.stderr
    assert user.shell("cat", user.mnt / "top").stdout == "hello"
    owner = user.shell("stat", "-c", "%u %g %A", user.mnt / "top").stdout
    assert owner == f"{user.user.pw_uid} {user.user.pw_gid} -rw-r--r--\n"
    status = user.json("status", user.mnt)
    assert status["cache"]["folder"] == f"{user.home}/.cache/thermo" and status["mounts"][0]["privileged"] is False
    assert user.json("load", user.mnt)[0]["files"] == 5
    mounted, = [line for line in open("/proc/mounts") if f" {user.mnt} " in line]
    options = set(mounted.split()[3].split(","))
    assert {"ro", "nosuid", "nodev", "default_permissions", f"user_id={user.user.pw_uid}"} <= options and "allow_other" not in options
    with pytest.raises(PermissionError):  # not even root: it is the user's own
        os.listdir(user.mnt)
    assert user.json("umount", user.mnt) == {"mount_point": str(user.mnt), "was_dead": False, "daemon_ended": True}
    user.check_clean()


def test_root_is_told_of_a_mount_that_is_closed_to_it_and_can_take_it_away(user, shop, thermo):
    user.done("mount", "s3://tables", user.mnt, "--endpoint", shop.url)
    root = subprocess.run([thermo, "status", "--cache", str(user.folder / "none")], capture_output=True, text=True, timeout=30)
    assert root.returncode == 0 and f"the mount at '{user.mnt}' lets only its own user in" in root.stderr
    subprocess.run([thermo, "umount", str(user.mnt)], check=True, timeout=30)
    harness.wait_for(lambda: not user.daemons(), 10, "the daemon to end")
    user.check_clean()


def test_a_dead_mount_of_a_user_is_replaced(user, shop):
    user.cache = user.home / ".cache/thermo"
    user.done("mount", "s3://tables", user.mnt, "--endpoint", shop.url)
    assert user.shell("cat", user.mnt / "top").stdout == "hello"
    user.kill()
    result = user.done("mount", "s3://tables", user.mnt, "--endpoint", shop.url)
    assert f"note: '{user.mnt}' held a mount whose daemon is dead; it is replaced" in result.stderr
    assert user.shell("cat", user.mnt / "top").stdout == "hello"
    user.kill()
    assert user.json("umount", user.mnt)["was_dead"] is True
    user.check_clean()


def test_mounts_that_a_user_may_not_have(user, shop, desk):
    endpoint = ["--endpoint", shop.url]
    user.refused_mount("s3://tables", *endpoint, "--cache", "/proc/1/thermo", says=["cache folder '/proc/1/thermo'", "another with --cache"])
    os.chown(user.mnt, 0, 0)
    user.refused_mount("s3://tables", *endpoint, says=["fusermount3: user has no write access to mountpoint", "an ordinary user needs a folder of their own"])
    os.chown(user.mnt, user.user.pw_uid, user.user.pw_gid)
    # Another user's daemon, and another user's store.
    desk.mount("s3://tables", *endpoint)
    desk.cache.chmod(0o755)
    user.refused("mount", "s3://tables", user.mnt, *endpoint, "--cache", desk.cache,
                 says=[f"the cache folder '{desk.cache}' belongs to another user, choose another with --cache", "group thermo"])
    for words in (["load", desk.mnt / "top"], ["status", desk.mnt], ["free", desk.mnt]):
        user.refused(*words, says=f"the daemon at '{desk.cache}/admin.sock' takes commands only from its own user, root and members of the group thermo")
    desk.umount()
    (desk.folder / "private").mkdir(mode=0o700)
    sentence = user.refused_mount(f"file://{desk.folder}/private")
    assert "private" in sentence and "Permission denied" in sentence


@pytest.fixture
def thermo_group():
    """The group whose members may command root's daemon."""
    try:
        yield grp.getgrnam("thermo").gr_gid
        return
    except KeyError:
        pass
    subprocess.run(["groupadd", "--system", "thermo"], check=True)
    yield grp.getgrnam("thermo").gr_gid
    subprocess.run(["groupdel", "thermo"], check=True)


def test_a_member_of_the_group_does_not_get_roots_rights(user, shop, desk, thermo_group):
    """Folders and key files are opened by the daemon: through it a member must not read what only root may."""
    endpoint = ["--endpoint", shop.url]
    desk.mount("s3://tables", *endpoint)
    info = desk.cache.stat()
    assert (info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode)) == (0, thermo_group, 0o750)
    (desk.folder / "private").mkdir(mode=0o700)
    (desk.folder / "private/f").write_text("for root only")
    user.groups = f"--groups={thermo_group}"
    cache = ["--cache", desk.cache]
    user.refused("mount", f"file://{desk.folder}/private", user.mnt, *cache, says=["runs as another user (uid 0)", "--cache DIR"])
    keyless = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    user.refused("mount", "s3://tables", user.mnt, *endpoint, *cache, env=keyless, says=["key files with that user's rights", "AWS_ACCESS_KEY_ID"])
    user.refused("mount", "s3://tables", user.mnt, *endpoint, *cache, "--profile", "x", says=["key files with that user's rights"])
    user.done("mount", "s3://tables", user.mnt, *endpoint, *cache)
    assert user.shell("cat", user.mnt / "top").returncode == 0
    user.done("umount", user.mnt)
    desk.umount()


def test_a_cache_folder_of_somebody_else(user, shop, desk):
    desk.mount("s3://tables", "--endpoint", shop.url)
    desk.umount()
    desk.cache.chmod(0o755)
    user.refused("mount", "s3://tables", user.mnt, "--endpoint", shop.url, "--cache", desk.cache,
                 says=[f"cache folder '{desk.cache}' is not writable by user {user.user.pw_uid}", "Permission denied", "change its owner or choose another with --cache"])


LISTENER = """
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print("listening", flush=True)
while True:
    peer, _ = server.accept()
    sys.stdout.write(repr(peer.recv(100_000)) + "\\n")
    sys.stdout.flush()
"""


@pytest.mark.parametrize("folder_of", ["user", "root"])
def test_keys_are_told_to_no_strangers_daemon(user, shop, desk, folder_of):
    """Whoever may write in the cache folder can listen there; the first thing that was sent had the secret key."""
    desk.cache.mkdir(mode=0o777)
    desk.cache.chmod(0o777)
    if folder_of == "user":
        os.chown(desk.cache, user.user.pw_uid, user.user.pw_gid)
    listener = subprocess.Popen(user.as_user("/usr/bin/python3", "-c", LISTENER, "admin.sock"), stdout=subprocess.PIPE, text=True, cwd=desk.cache)
    try:
        assert listener.stdout.readline() == "listening\n"
        desk.refused_mount("s3://tables", "--endpoint", shop.url,
                           says=[f"uid {user.user.pw_uid} listens in the folder '{desk.cache}'", "the keys of this mount", "--cache"])
    finally:
        listener.kill()
        heard = listener.communicate()[0]
    assert "testtest" not in heard, heard


def test_a_daemon_serves_no_cache_folder_of_another_user(user, shop, desk):
    desk.cache.mkdir(mode=0o755)
    os.chown(desk.cache, user.user.pw_uid, user.user.pw_gid)
    desk.refused_mount("s3://tables", "--endpoint", shop.url,
                       says=[f"the cache folder '{desk.cache}' belongs to another user (uid {user.user.pw_uid})", "chown -R 0 ", "another with --cache"])
    assert not os.listdir(desk.cache)
    # Nor does a link there lead root's log elsewhere.
    os.chown(desk.cache, 0, 0)
    (desk.folder / "precious").write_text("as it was")
    (desk.cache / "thermo.log").symlink_to(desk.folder / "precious")
    desk.refused_mount("s3://tables", "--endpoint", shop.url, says=[f"the log '{desk.cache}/thermo.log' is a symbolic link", "--log"])
    assert (desk.folder / "precious").read_text() == "as it was"


CONF = """
printf '{line}\\n' > fuse.conf
mount --bind fuse.conf /etc/fuse.conf
{call}
"""


def test_allow_other_needs_a_line_in_fuse_conf(user, shop):
    call = " ".join(user.command("mount", "s3://tables", user.mnt, "--endpoint", shop.url, "-o", "allow_other"))
    refused = privately(CONF.format(line="# user_allow_other", call=call), user)
    assert refused.returncode == 1
    assert "mount option 'allow_other'" in refused.stderr and "add the line user_allow_other to /etc/fuse.conf, or leave -o allow_other out" in refused.stderr
    user.check_clean()
    granted = privately(CONF.format(line="user_allow_other", call=f"{call}; cat {user.mnt}/top; {' '.join(user.command('umount', user.mnt))}"), user)
    assert granted.returncode == 0 and granted.stdout == "hello", granted.stderr
    user.check_clean()


def test_what_is_not_installed_is_named_with_its_command(user, shop):
    user.refused_mount("s3://tables", "--endpoint", shop.url, env={"PATH": "/none"},
                       says="fusermount3 is not installed, and only root can do without: apt-get install fuse3")
    for command in (user.command("mount", "s3://tables", user.mnt, "--endpoint", shop.url), [user.thermo, "mount", "s3://tables", user.mnt, "--cache", user.cache]):
        result = privately(f"mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3; exec {' '.join(map(str, command))}", user)
        assert result.returncode == 1
        assert result.stderr == "thermo: /dev/fuse is missing: run modprobe fuse; in a container give it --device /dev/fuse\n"
        user.check_clean()


@pytest.mark.parametrize("name", ["INT", "HUP", "TERM"])
def test_interrupted_while_it_mounts(user, shop, name):
    """Between the mount and the daemon's answer: the mount is taken back and that is said. The signal killed before a word."""
    tools = user.folder / "tools"
    tools.mkdir()
    helper = tools / "fusermount3"
    helper.write_text(f'#!/bin/sh\nkill -{name} $PPID\nexec {shutil.which("fusermount3")} "$@"\n')
    helper.chmod(0o755)
    sentence = user.refused("mount", "s3://tables", user.mnt, "--endpoint", shop.url, env={"PATH": f"{tools}:{os.environ['PATH']}"})
    assert sentence == f"thermo: interrupted: '{user.mnt}' is not mounted"


def test_a_closed_device_is_named(user, shop):
    device = pathlib.Path("/dev/fuse")
    device.chmod(0o600)
    try:
        user.refused_mount("s3://tables", "--endpoint", shop.url, says=["fusermount3: failed to open /dev/fuse: Permission denied", "chmod 666 /dev/fuse"])
    finally:
        device.chmod(0o666)


def test_foreground_of_a_user(user, shop):
    process = user.start("mount", "s3://tables", user.mnt, "--endpoint", shop.url, "-f")
    harness.wait_for(lambda: user.shell("cat", user.mnt / "top").stdout == "hello" or process.poll() is not None, 15, "the mount")
    process.terminate()
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    user.check_clean()
