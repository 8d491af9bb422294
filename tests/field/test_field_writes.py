"""Section writes. A mount that only reads says so: EROFS for each kind of change, at once, and nothing changes in the bucket.

What a mount that writes must hold (rows M26 to M43) has no tests here yet.
"""
import os

import pytest

CHANGES = {
    "create": "os.open(P('new'), os.O_WRONLY | os.O_CREAT)",
    "create_exclusive": "os.open(P('new'), os.O_RDWR | os.O_CREAT | os.O_EXCL)",
    "append": "os.open(P('d/f'), os.O_WRONLY | os.O_APPEND)",
    "write_in_place": "os.open(P('d/f'), os.O_RDWR)",
    "truncate_at_open": "os.open(P('d/f'), os.O_WRONLY | os.O_TRUNC)",
    "truncate_by_path": "os.truncate(P('d/f'), 1)",
    "unlink": "os.unlink(P('d/f'))",
    "rename_file": "os.rename(P('d/f'), P('d/g'))",
    "rename_over": "os.rename(P('d/f'), P('d/other'))",
    "rename_folder": "os.rename(P('d'), P('e'))",
    "mkdir": "os.mkdir(P('new'))",
    "rmdir": "os.rmdir(P('d'))",
    "chmod": "os.chmod(P('d/f'), 0o600)",
    "chown": "os.chown(P('d/f'), 1, 1)",
    "utimens": "os.utime(P('d/f'), (1, 1))",
    "symlink": "os.symlink('d/f', P('s'))",
    "link": "os.link(P('d/f'), P('h'))",
    "mkfifo": "os.mkfifo(P('p'))",
    "setxattr": "os.setxattr(P('d/f'), 'user.x', b'1')",
    "removexattr": "os.removexattr(P('d/f'), 'user.x')",
}


def test_M26_to_M43_read_only_is_said(store, mount, read, python):
    """Appends, writes and renames were refused with errors that mean something else, or seemed to work and were lost."""
    store.put("d/f", b"kept")
    store.put("d/other", b"kept too")
    where = mount(store)
    if not where.read_only:
        pytest.skip("this mount writes")
    before = sorted(store.keys())
    answers = python("import errno\nroot = sys.argv[1]\nP = lambda name: os.path.join(root, name)\nfor change in sys.argv[2:]:\n"
                     "  try: exec(change); print('worked')\n  except OSError as e: print(errno.errorcode[e.errno])", where.path, *CHANGES.values())
    assert dict(zip(CHANGES, answers.stdout.split(), strict=True)) == {name: "EROFS" for name in CHANGES}
    assert read(where / "d/f") == (0, b"kept")
    assert sorted(os.listdir(where / "d")) == ["f", "other"]
    assert sorted(store.keys()) == before
