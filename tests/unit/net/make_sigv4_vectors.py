#!/usr/bin/env python3
"""Writes sigv4_vectors.inc: signatures as botocore computes them, so that our signer has a second opinion on odd keys and queries.

Run with a Python that has botocore: python3 make_sigv4_vectors.py > sigv4_vectors.inc
"""

import datetime
from unittest import mock

from botocore import auth, awsrequest, credentials

ACCESS, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "token/with+signs=="
NOW = datetime.datetime(2026, 11, 30, 22, 2, 38)

KEYS = [
    "plain", "dt=2024/", "dt=2024/part-0.parquet", "a b", "%2F", "100%", "+", "a+b c", "é", "e\u0301", "日本/語", "?", "a?b=c&d", "#", "a//b",
    "/lead", "./x", "../x", "a/./b", "~", "~user/-_.", "a:b@c", "!$'()*,;", "[x]{y}", "quo\"te", "back\\slash", "new\nline", "tab\there", "\x01",
    "\x7f", "|", "^`", "<&>", " lead", "trail ", "😀",
]
QUERIES = [
    [("prefix", "dt=2024/"), ("list-type", "2"), ("delimiter", "/")],
    [("uploads", "")],
    [("delete", "")],
    [("partNumber", "10"), ("uploadId", "a+b/c=="), ("x", "")],
    [("prefix", "a b+%2F?é"), ("encoding-type", "url"), ("list-type", "2"), ("start-after", "~"), ("max-keys", "1000")],
    [("b", "2"), ("a", "2"), ("B", "1"), ("a", "1")],
    [("a-b", "1"), ("a", "1"), ("a.b", "1"), ("a_b", "1"), ("a~b", "1"), ("a b", "1"), ("a%b", "1")],
    [("prefix", "\x01\n")],
]


def encode(text, safe=""):
    out = []
    for byte in text.encode():
        char = chr(byte)
        out.append(char if char.isascii() and (char.isalnum() or char in "-_.~" + safe) else f"%{byte:02X}")
    return "".join(out)


def quote(text):
    """A C++ string literal; octal escapes, because they end after three digits."""
    return '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode()) + '"'


def sign(method, key, query, headers, token):
    url = "https://examplebucket.s3.eu-west-1.amazonaws.com/" + encode(key, "/")
    if query:
        url += "?" + "&".join(f"{encode(n)}={encode(v)}" for n, v in query)
    request = awsrequest.AWSRequest(method=method, url=url, headers=dict(headers))
    request.context["payload_signing_enabled"] = False
    signer = auth.S3SigV4Auth(credentials.Credentials(ACCESS, SECRET, token), "s3", "eu-west-1")
    # Newer versions read the clock through a function, older ones through datetime.
    patch = "get_current_datetime" if hasattr(auth, "get_current_datetime") else "datetime"
    with mock.patch.object(auth, patch) as fake:
        if patch == "datetime":
            fake.datetime.utcnow.return_value = NOW
        else:
            fake.return_value = NOW
        signer.add_auth(request)
    return request


def emit(method, key, query, headers=(), token=None):
    request = sign(method, key, query, headers, token)
    signature = request.headers["Authorization"].rpartition("Signature=")[2]
    pairs = ", ".join(f"{{{quote(n)}, {quote(v)}}}" for n, v in query)
    extra = ", ".join(f"{{{quote(n)}, {quote(v)}}}" for n, v in headers)
    print(f'{{"{method}", {quote(key)}, {{{pairs}}}, {{{extra}}}, {quote(token or "")}, "{signature}"}},')


def main():
    print("// Written by make_sigv4_vectors.py with botocore: method, key, query, headers, session token, signature. NOLINT")
    for key in KEYS:
        emit("GET", key, [])
    for query in QUERIES:
        emit("GET", "", query)
    emit("HEAD", "dt=2024/x", [])
    emit("POST", "dt=2024/x", [("uploads", "")])
    emit("DELETE", "a b", [], token=TOKEN)
    emit("GET", "a b", [], [("Range", "bytes=0-9"), ("If-Match", '"0123-4"')])
    emit("PUT", "x=1/é", [], [("Content-Type", "text/plain; charset=utf-8"), ("X-Amz-Meta-Two", "a   b"), ("x-amz-meta-one", " padded ")], TOKEN)


main()
