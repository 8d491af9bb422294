#!/usr/bin/env python3
"""Writes the binary seeds below corpus/: the on-disk forms of cache and catalog, and requests of the kernel. The other seeds are text, kept as they are."""
import pathlib
import struct

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def text(value, form="<"):
    return struct.pack(form + "I", len(value)) + value


def sidecar(size, key, etag):
    head = struct.pack("<8sIIIQQQ", b"THRMSUM1", 1, 1 << 20, 4096, size, 0x1122334455667788, 0x99AABBCCDDEEFF00)
    head += text(b"s3://127.0.0.1:8333/marketdata") + text(key) + text(etag)
    head = head.ljust(4092, b"\0")
    return head + struct.pack("<I", crc32c(head))


def record(state, size, crcs):
    return (struct.pack("<BBQQQQ", 1, state, 7, 8192, size, size) + text(b"s3://h/b") + text(b"quotes/a.parquet") + text(b'"e"')
            + struct.pack("<I", len(crcs)) + b"".join(struct.pack("<I", c) for c in crcs))


def fuse(*requests):
    """(opcode, node, arguments): what tests/fuzz/fuse.cc makes frames of."""
    return b"".join(bytes([opcode, node, len(args)]) + args for opcode, node, args in requests)


def open_in(flags):
    return struct.pack("<II", flags, 0)


def read_in(handle, offset, size):
    return struct.pack("<QQIIQII", handle, offset, size, 0, 0, 0, 0)


LOOKUP, GETATTR, SETATTR, OPEN, READ, STATFS, RELEASE, GETXATTR, LISTXATTR = 1, 3, 4, 14, 15, 17, 18, 22, 23
INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, READDIRPLUS, FORGET = 26, 27, 28, 29, 36, 44, 2
RELEASE_IN = struct.pack("<QIIQ", 1, 0, 0, 0)

SEEDS = {
    "fuzz_sidecar/header": sidecar(200 << 20, b"quotes/Date=2024-01-02/Price.dat", b'"5d41402abc4b2a76b9719d911017c592-25"') + b"\xff" * 64,
    "fuzz_sidecar/header_odd_key": sidecar(65537, "a b/\N{EURO SIGN}\n".encode() * 60, b""),
    "fuzz_sidecar/record_small": record(0, 10000, [1, 2, 3]),
    "fuzz_sidecar/record_open": record(1, 1 << 30, []),
    "fuzz_sidecar/record_key": b"o" + bytes(range(16)),
    "fuzz_catalog/file": b"\0\1" + struct.pack(">QIQQqq", 17, 2, 99, 1 << 30, 10**18, 10**18) + text(b'"e"', ">") + text(b"GLACIER", ">"),
    "fuzz_catalog/folder": b"\1\1" + struct.pack(">QQqqqqI", 18, 100, 1, 2, 3, 0, 21),
    "fuzz_catalog/owner": b"\2\1" + struct.pack(">I", 1) + b"fquotes/Date=2024-01-02/",
    "fuzz_catalog/mark": b"\3\1" + struct.pack(">qq", 10**18, 10**18 + 5),
    "fuzz_catalog/names": b"\4quotes//Date=2024-01-02/./Price.dat\nquotes//Date\xff\xff/",
    "fuzz_fuse/walk": fuse((LOOKUP, 0, b"Date=2024-01-02\0"), (GETATTR, 1, bytes(16)), (OPENDIR, 1, open_in(0)),
                           (READDIRPLUS, 1, read_in(1, 0, 4096)), (READDIR, 1, read_in(1, 1, 300)), (RELEASEDIR, 1, RELEASE_IN),
                           (FORGET, 1, struct.pack("<Q", 1))),
    "fuzz_fuse/read": fuse((OPEN, 3, open_in(0)), (READ, 3, read_in(1, 0, 65536)), (READ, 3, read_in(1, 69000, 4096)),
                           (INTERRUPT, 0, struct.pack("<Q", 4)), (RELEASE, 3, RELEASE_IN), (STATFS, 0, b"")),
    "fuzz_fuse/xattr": fuse((GETXATTR, 3, struct.pack("<II", 64, 0) + b"user.thermo.etag\0"), (LISTXATTR, 3, struct.pack("<II", 0, 0)),
                            (LISTXATTR, 3, struct.pack("<II", 200, 0)), (SETATTR, 3, bytes(88)), (OPEN, 3, open_in(1))),
    "fuzz_fuse/raw_init": b"\xff" + struct.pack("<IIQQIIIHH", 104, INIT, 2, 0, 0, 0, 0, 0, 0) + struct.pack("<IIII", 7, 45, 1 << 17, 0xFFFFFFFF) + bytes(48),
    "fuzz_fuse/raw_cut": b"\xff" + struct.pack("<IIQQIIIHH", 48, LOOKUP, 2, 1, 0, 0, 0, 1, 0) + b"a\0\0\0\0\0\0\0",
}

if __name__ == "__main__":
    for name, data in SEEDS.items():
        path = CORPUS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
