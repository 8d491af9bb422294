"""Section listing: every name once, whatever the size of the folder, the way it is read and the signals that come in between."""
import errno
import os
import time

import field_mount
import harness
import pytest

# Python has neither rewinddir nor telldir: the C library's own, each answer of readdir with its errno.
READDIR = """
import ctypes, signal
libc = ctypes.CDLL(None, use_errno=True)
libc.opendir.restype = libc.readdir64.restype = ctypes.c_void_p
libc.telldir.restype = ctypes.c_long
for f in (libc.readdir64, libc.rewinddir, libc.telldir, libc.closedir): f.argtypes = [ctypes.c_void_p]
libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
interrupted = 0
def check(value, what):
  if not value: raise OSError(ctypes.get_errno(), what)
  return value
def entry(d):
  global interrupted
  while True:
    ctypes.set_errno(0)
    e = libc.readdir64(d)
    if e: return ctypes.string_at(e + 19)
    if ctypes.get_errno() == 4: interrupted += 1; continue
    if ctypes.get_errno(): raise OSError(ctypes.get_errno(), 'readdir')
    return None
def rest(d):
  found = []
  while (name := entry(d)) is not None:
    if name not in (b'.', b'..'): found.append(name)
  return found
"""


@pytest.mark.parametrize("count", [0, 3, 1500])
def test_M44_rewinddir(store, mount, python, count):
    """After rewinddir a folder was empty, or the call failed: file managers and language libraries read each folder twice."""
    store.put("d/", b"")
    if count:
        store.bulk("d/n", count)
    where = mount(store)
    script = READDIR + """
d = check(libc.opendir(sys.argv[1].encode()), 'opendir')
first = rest(d); libc.rewinddir(d); second = rest(d); libc.rewinddir(d); entry(d); libc.rewinddir(d); third = rest(d)
assert first == second == third and len(first) == len(set(first)) == int(sys.argv[2]), (len(first), len(second), len(third))
"""
    result = python(script, where / "d", str(count))
    assert result.returncode == 0, result.stderr or errno.errorcode[result.returncode]


def test_M44_seekdir(store, mount, python):
    """Going back to a position that telldir gave: EINVAL, or other names than before."""
    store.bulk("d/n", 1500)
    where = mount(store)
    script = READDIR + """
d = check(libc.opendir(sys.argv[1].encode()), 'opendir')
marks, names = [], []
while True:
  marks.append(libc.telldir(d))
  name = entry(d)
  if name is None: break
  names.append(name)
for n in [0, 1, 2, 3, 700, 1499, 1501, len(names), 5, 1024, 256, 255]:
  libc.seekdir(d, marks[n])
  assert [entry(d) for _ in range(3)] == (names[n:] + [None] * 3)[:3], n
libc.seekdir(d, marks[40]); libc.rewinddir(d)
assert len(rest(d)) == 1500
"""
    result = python(script, where / "d")
    assert result.returncode == 0, result.stderr or errno.errorcode[result.returncode]


def test_M44_interrupted(store, mount, python):
    """A signal in the middle of a slow listing: the listing came back short, and nobody could tell."""
    store.bulk("d/n", 2500)
    store.pace(first_byte_ms=150)
    where = mount(store)
    script = READDIR + """
left = 40
def tick(*unused):
  global left
  left -= 1
  if left == 0: signal.setitimer(signal.ITIMER_REAL, 0)
signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.02)
while not (d := libc.opendir(sys.argv[1].encode())): check(ctypes.get_errno() == 4, 'opendir')
found = rest(d)
signal.setitimer(signal.ITIMER_REAL, 0)
assert len(found) == len(set(found)) == 2500, len(found)
print(interrupted)
"""
    result = python(script, where / "d")
    assert result.returncode == 0, result.stderr or errno.errorcode[result.returncode]
    if store.sim and where.ours:
        assert int(result.stdout) > 0, "the test has interrupted nothing"


def test_M44_rewinddir_shows_what_is_new(store, mount):
    """A folder handle that is kept (as inotify-less watchers do) and read again shows what came and went."""
    store.put("d/a")
    where = mount(store)
    handle = os.open(where / "d", os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert os.listdir(handle) == ["a"]
        store.put("d/b")
        where.expire()
        assert sorted(os.listdir(handle)) == ["a", "b"]
    finally:
        os.close(handle)


def test_M45_big_folder(store, mount, run):
    """A big folder showed lines of question marks for the names whose attributes did not come."""
    store.bulk("d/n", 1500)
    where = mount(store)
    listed = run("ls", "-lU", where / "d")
    assert listed.returncode == 0, listed.stderr[-500:]
    assert "?" not in listed.stdout
    assert len({line.rsplit(None, 1)[1] for line in listed.stdout.splitlines()[1:]}) == 1500


def test_M45_very_big_folder(store, mount, python):
    """With 100,000 names the reader was frozen for minutes."""
    store.bulk("d/n", 100_000)
    where = mount(store, ttl=field_mount.LONG_TTL)
    script = """
found = [(e.name, e.is_file()) for e in os.scandir(sys.argv[1])]
assert len(found) == len(set(found)) == 100_000 and all(is_file for _, is_file in found), len(found)
for name, _ in found[::40]: assert os.stat(sys.argv[1] + '/' + name).st_size == 1
"""
    started = time.monotonic()
    result = python(script, where / "d", seconds=60)
    assert result.returncode == 0, result.stderr or errno.errorcode[result.returncode]
    assert time.monotonic() - started < 30 * harness.SLOW


def test_M45_pages_that_end_at_a_folder(store, mount):
    """Listings whose pages end just before, at and after a common prefix lost or doubled a folder."""
    for before in (998, 999, 1000, 1001):
        store.bulk(f"p{before}/a", before)
        store.bulk(f"p{before}/b/", 3)
        store.put(f"p{before}/b-z")
        store.put(f"p{before}/c")
    store.needs_order()
    where = mount(store)
    for before in (998, 999, 1000, 1001):
        found = os.listdir(where / f"p{before}")
        assert sorted(found) == sorted([f"a{n:08}" for n in range(before)] + ["b", "b-z", "c"])
        assert len(os.listdir(where / f"p{before}/b")) == 3


def test_M46_open_file_stays_listed(store, mount, python):
    """A file that was open for writing and not yet uploaded dropped out of its folder's listing when the folder was asked again.

    On a mount that only reads: opening for writing is refused, and leaves no ghost in the listing.
    """
    store.put("d/old")
    where = mount(store)
    if where.read_only:
        assert python("os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)", where / "d/new").returncode == errno.EROFS
        assert os.listdir(where / "d") == ["old"]
        return
    with open(where / "d/new", "wb") as f:
        f.write(b"x")
        where.expire()
        assert sorted(os.listdir(where / "d")) == ["new", "old"]


def test_M47_df(store, mount, run):
    """`df` showed nothing, or a size so small that backup programs refused to start."""
    store.put("f")
    where = mount(store)
    line = run("df", "-P", "-B1", where.path, check=True).stdout.splitlines()[-1].split()
    size, used, free = (int(word) for word in line[1:4])
    assert size > 1 << 40 and free > 1 << 40 and 0 <= used <= size, line
    assert line[5] == str(where.path)
    nodes = os.statvfs(where.path)
    assert nodes.f_files == 0 or nodes.f_ffree > 1_000_000, "programs that look at inodes must not think the mount is full"
    assert nodes.f_namemax >= 255


def test_M48_many_files_open(store, mount, run, python):
    """With 20 files open for writing every operation of the mount hung. Here 64 open for writing, or for reading where that is all there is."""
    for n in range(64):
        store.put(f"d/f{n}", b"x" * 100_000)
    where = mount(store)
    flags = os.O_RDONLY if where.read_only else os.O_WRONLY
    if where.read_only:
        script = "n = 0\nfor p in sys.argv[1:]:\n  try: os.open(p, os.O_WRONLY)\n  except OSError as e: n += e.errno == 30\nprint(n)"
        assert python(script, *(where / f"d/f{n}" for n in range(64))).stdout.strip() == "64", "each is EROFS"
    handles = []
    try:
        for n in range(64):
            handles.append(os.open(where / f"d/f{n}", flags))
        assert len(run("ls", where / "d", seconds=5, check=True).stdout.split()) == 64
        assert run("stat", where / "d/f63", seconds=5).returncode == 0
        if where.read_only:
            assert all(os.pread(handle, 4, 99_996) == b"xxxx" for handle in handles)
    finally:
        for handle in handles:
            os.close(handle)
