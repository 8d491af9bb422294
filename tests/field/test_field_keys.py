"""Section keys: S3 keys are bytes, names are what a folder can hold. No key may hide its neighbours, be altered, or end the mount."""
import errno
import os
import unicodedata

import pytest


def names(path):
    """The names of a folder as a listing gives them, doubles included."""
    found = os.listdir(path)
    assert sorted(found) == sorted(set(found)), "a name is listed twice"
    return sorted(found)


def test_M1_file_and_folder_of_one_name(store, mount, read):
    """`fb` and `fb/foo` were both in the bucket; users could reach one of the two, or saw the name twice."""
    store.put("fb", b"the file")
    store.put_odd("fb/foo")
    where = mount(store)
    assert names(where.path) == ["fb"]
    assert read(where / "fb/foo") == (0, b"x")
    if where.ours:
        assert read(where / ".object:fb") == (0, b"the file"), "the documented way to the file"
        assert names(where.path) == ["fb"]


def test_M1_known_before_the_folder_appears(store, mount, read, ours):
    """The same, when the file was known as a file before somebody else put something below its name."""
    store.put("fb", b"the file")
    where = mount(store)
    assert read(where / "fb") == (0, b"the file")
    store.put("fb/foo", b"inside")
    where.expire()
    assert names(where.path) == ["fb"]
    assert read(where / "fb/foo") == (0, b"inside")
    assert read(where / ".object:fb") == (0, b"the file")
    store.delete("fb/foo")
    where.expire()
    assert names(where.path) == ["fb"]
    assert read(where / "fb") == (0, b"the file")


def test_M2_a_name_is_listed_once(store, mount):
    """`a-b` sorts between `a` and `a/c` in the store's order, so the object and the folder came far apart and both were shown."""
    store.put_odd("a", "a-b", "a/c", "a.b", "a!", "a0")
    assert names(mount(store).path) == ["a", "a!", "a-b", "a.b", "a0"]


def test_M2_many_keys_between_file_and_folder(store, mount):
    """The same over more than a page: 1,200 keys stand between `a` and `a/c`."""
    store.put("a")
    store.bulk("a-", 1200)
    store.put_odd("a/c")
    store.needs_order()
    where = mount(store)
    assert os.path.isdir(where / "a"), "one page of `a...` does not reach the folder"
    assert names(where / "a") == ["c"]
    assert names(where.path) == ["a"] + [f"a-{n:08}" for n in range(1200)]


@pytest.mark.parametrize("row", ["M3", "M4"])
def test_M3_M4_empty_component(store, mount, run, row):
    """`e//x` showed as a line of question marks (M3), or made every listing of `e` an I/O error (M4)."""
    store.put_odd("e//x", "e/ok", "/lead", "e///y", "t//")
    where = mount(store)
    if row == "M3":
        listed = run("ls", "-la", where / "e")
        assert listed.returncode == 0, listed.stderr
        assert " ok\n" in listed.stdout and "?" not in listed.stdout, listed.stdout
    else:
        found = run("find", where.path, "-printf", "%P\n")
        assert found.returncode == 0, found.stderr
        assert sorted(found.stdout.split()) == ["e", "e/ok", "t"], found.stdout
    if where.ours:
        assert names(where / "t") == []
        assert int(os.getxattr(where / "e", "user.thermo.skipped")) >= 1


def test_M5_dot_components(store, mount, run, read):
    """Keys with `.` and `..` sent walks in circles or out of the mount."""
    store.put_odd("a/../b", "a/./c", "a/ok", "a/d/..", "a/d/.", "..", "./z", "../up")
    where = mount(store)
    found = run("find", where / "a", "-printf", "%P\n")
    assert found.returncode == 0, found.stderr
    assert found.stdout.split("\n")[:50] == found.stdout.split("\n"), "the walk ends"
    assert "ok" in found.stdout.split()
    assert names(where.path) == ["a"]
    assert read(where / "a/ok") == (0, b"x")


def test_M6_newline_as_a_name(store, mount, python):
    """One stat of a name that is just a newline took the whole mount down."""
    store.put("a/f")
    where = mount(store)
    for name in ("a/\n", "\n", "a/\n/x"):
        assert python("os.stat(sys.argv[1])", where / name).returncode == errno.ENOENT
    assert names(where / "a") == ["f"]


def test_M6_newline_in_a_key(store, mount, read):
    """Keys with control characters are names like others: shown, opened, and no harm to their listing."""
    odd = ["a/one\ntwo", "a/\ttab", "a/\x01control", "a/cr\r", "a/\n"]
    store.put("a/f")
    store.put_odd(*odd)
    where = mount(store)
    assert names(where / "a") == sorted(k[2:] for k in odd + ["a/f"])
    for key in odd:
        assert read(where / key) == (0, b"x"), repr(key)


def test_M7_characters_that_urls_treat_specially(store, mount, read):
    """Names were shown percent-encoded, or could be listed but not opened."""
    odd = [f"k{c}k" for c in ["#", "+", "%20", "%", "%2F", "?", "&", " ", "é", "\\", "=", ";", "@", ":", "\"", "'", "<", ">", "*", "~", "$", "日本", "😀"]]
    store.put_odd(*odd)
    store.put_odd(*(f"dt=2024-01-01/{name}/x" for name in odd))
    where = mount(store)
    for name in odd:  # looked up before any listing has told them
        assert read(where / name) == (0, b"x"), name
        assert read(where / "dt=2024-01-01" / name / "x") == (0, b"x"), name
    assert names(where.path) == sorted(odd + ["dt=2024-01-01"])
    assert names(where / "dt=2024-01-01") == sorted(odd)


def test_M8_two_spellings_of_one_letter(store, mount, read):
    """The composed and the decomposed form are two keys; they were merged into one name, and one object could not be reached."""
    forms = [unicodedata.normalize(form, "é") for form in ("NFC", "NFD")]
    store.put_odd(*forms)
    store.put(forms[0], b"composed")
    store.put(forms[1], b"decomposed")
    where = mount(store)
    assert names(where.path) == sorted(forms)
    assert read(where / forms[0]) == (0, b"composed")
    assert read(where / forms[1]) == (0, b"decomposed")


def test_M9_folder_outlives_its_last_file(store, mount, python):
    """A folder that somebody made vanished together with its last file."""
    where = mount(store)
    if where.read_only:
        store.put("d/", b"")
        store.put("d/f")
        assert names(where / "d") == ["f"]
        store.delete("d/f")
        where.expire()
    else:
        assert python("d = sys.argv[1]; os.mkdir(d); open(d + '/f', 'w').close(); os.unlink(d + '/f')", where / "d").returncode == 0
    assert os.path.isdir(where / "d")
    assert names(where / "d") == []


def test_M9_folder_without_marker_goes_with_its_last_object(store, mount):
    """The other side: a folder that only objects below it made is gone with them, not a ghost that cannot be listed."""
    store.put("other")
    store.put("d/deep/f")
    where = mount(store)
    assert names(where / "d/deep") == ["f"]
    store.delete("d/deep/f")
    where.expire()
    assert names(where.path) == ["other"]
    assert not os.path.exists(where / "d/deep")


def test_M10_modes_and_owner_of_foreign_objects(store, mount):
    """Objects written by other tools carry no modes: they showed as mode 000 of root, so nobody could read them."""
    store.put("d/f")
    where = mount(store)
    for path, least in ((where / "d", 0o500), (where / "d/f", 0o400)):
        status = os.stat(path)
        assert status.st_uid == os.geteuid() and status.st_gid == os.getegid()
        assert status.st_mode & 0o777 & least == least, oct(status.st_mode)
    if where.ours:
        assert (os.stat(where / "d").st_mode & 0o7777, os.stat(where / "d/f").st_mode & 0o7777) == (0o755, 0o644)


def test_M11_folder_times_stay(store, mount, run):
    """A folder's time of change moved each time it was listed; tar called the folder changed and ended with an error."""
    for n in range(20):
        store.put(f"d/e/f{n}")
    where = mount(store)
    before = [os.stat(where / p).st_mtime_ns for p in ("d", "d/e")]
    assert before[0] > 0
    for _ in range(2):
        assert len(names(where / "d/e")) == 20
        assert [os.stat(where / p).st_mtime_ns for p in ("d", "d/e")] == before
        where.expire()
    archive = run("tar", "--create", "--file=/dev/null", "--directory", where.path, "d")
    assert (archive.returncode, archive.stderr) == (0, "")
    assert [os.stat(where / p).st_mtime_ns for p in ("d", "d/e")] == before


def only_below(prefix):
    """The usual policy: objects below the prefix may be read, listings must ask for it or for something below."""
    def rule(request):
        if request.key:
            return None if request.key.startswith(prefix) else "AccessDenied"
        return None if request.query.get("prefix", "").startswith(prefix) else "AccessDenied"
    return rule


def test_M12_keys_for_one_prefix_only(store, mount, gate, read, python):
    """Keys that may list one prefix only: the mount came up, then everything was "no such file" or an I/O error.

    Right are: refused at the mount with a message about permission, or mounted, with EACCES for what is forbidden.
    """
    store.put("ok/f", b"mine")
    store.put("other/f")
    front = gate(store, only_below("ok/"))
    try:
        where = mount(store, url=front.url)
    except RuntimeError as error:
        message = str(error).lower()
        assert "permission" in message or "denied" in message or "forbidden" in message, message
        return
    assert python("os.listdir(sys.argv[1])", where.path).returncode == errno.EACCES
    assert read(where / "ok/f") in ((0, b"mine"), (errno.EACCES, b""))
    assert read(where / "other/f")[0] == errno.EACCES


def test_M12_objects_that_may_not_be_read(store, mount, gate, read):
    """The same with listing allowed: what is listed and may not be read is EACCES, not "no such file"; its neighbours are read."""
    store.put("ok/f", b"mine")
    store.put("other/f", b"not mine")
    front = gate(store, lambda request: "AccessDenied" if request.key.startswith("other/") else None)
    where = mount(store, url=front.url)
    assert names(where.path) == ["ok", "other"]
    assert read(where / "other/f") == (errno.EACCES, b"")
    assert read(where / "ok/f") == (0, b"mine")
    assert names(where / "other") == ["f"]


def test_M12_mount_of_the_allowed_prefix(store, mount, gate, read, ours):
    """The same keys, with the mount on the prefix that they are for: everything works."""
    store.put("ok/f", b"mine")
    store.put("ok/d/g", b"deep")
    front = gate(store, only_below("ok/"))
    where = mount(store, url=front.url, prefix="ok")
    assert names(where.path) == ["d", "f"]
    assert read(where / "f") == (0, b"mine")
    assert read(where / "d/g") == (0, b"deep")
    assert not os.path.exists(where / "none")


def test_names_too_long(store, mount, read):
    """A component of more than 255 bytes cannot be a name: skipped, its neighbours shown. 255 bytes are a name."""
    longest, too_long = "n" * 255, "n" * 256
    store.put_odd(f"d/{longest}", f"d/{too_long}", f"d/{too_long}/inside", "d/ok", "é" * 128)
    where = mount(store)
    assert names(where / "d") == sorted([longest, "ok"])
    assert read(where / "d" / longest) == (0, b"x")
    with pytest.raises(OSError) as caught:
        os.stat(where / "d" / too_long)
    assert caught.value.errno == errno.ENAMETOOLONG
    assert names(where.path) == ["d"]


def test_names_deep(store, mount, run, read):
    """1,024 bytes of key in 500 folders: walked and read."""
    key = "d/" * 500 + "f"
    store.put_odd(key)
    where = mount(store)
    assert read(where / key) == (0, b"x")
    found = run("find", where.path, "-type", "d", "-printf", ".")
    assert (found.returncode, len(found.stdout)) == (0, 501)


def test_markers_of_other_tools(store, mount, read):
    """Folder markers with data in them, of Hadoop's kind, and of objects whose key ends in a slash below a missing folder."""
    store.put_odd("m/", "with-data/", "with-data/f", "h_$folder$", "h/f", "lone/deep/")
    store.put("with-data/", b"a marker with bytes")
    where = mount(store)
    assert names(where.path) == sorted(["m", "with-data", "h_$folder$", "h", "lone"])
    assert names(where / "m") == []
    assert names(where / "with-data") == ["f"]
    assert names(where / "lone") == ["deep"]
    assert names(where / "lone/deep") == []
    assert read(where / "h_$folder$") == (0, b"x")
