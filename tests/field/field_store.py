"""The S3 side of a field test: an endpoint with a bucket of its own, and a gate that stands before it and refuses by rule."""
import contextlib
import http.client
import http.server
import itertools
import os
import threading
import urllib.parse

import harness
import pytest

_numbers = itertools.count(1)
SECRET = "testtest"


class Store:
    """An empty bucket at an endpoint: a new one, or FIELD_BUCKET where buckets cannot be made.

    `sim` is the s3sim behind it, None where the endpoint is somebody else's.
    """

    def __init__(self, url, sim=None):
        self.url, self.sim = url, sim
        self.region = os.environ.get("FIELD_REGION", "us-east-1")
        self.access_key = os.environ.get("FIELD_ACCESS_KEY", "test")
        self.secret_key = os.environ.get("FIELD_SECRET_KEY", SECRET)
        self.client = harness.s3_client(url, self.access_key, self.secret_key, region=self.region)
        named = os.environ.get("FIELD_BUCKET") if sim is None else None
        self.own = not named
        self.bucket = named or f"field-{os.getpid()}-{next(_numbers)}"
        if self.own:
            self.client.create_bucket(Bucket=self.bucket)
        elif self.keys():
            raise RuntimeError(f"the bucket {self.bucket} is not empty: FIELD_BUCKET names one that the tests fill and empty")

    def put(self, key, body=b"x"):
        self.client.put_object(Bucket=self.bucket, Key=key, Body=body)

    def copy(self, source, key):
        """Inside the store: the object is another one at once, without an upload's time."""
        self.client.copy_object(Bucket=self.bucket, Key=key, CopySource={"Bucket": self.bucket, "Key": source})

    def put_odd(self, *keys):
        """Keys that some endpoints alter or refuse; the test is skipped there, because it would test the endpoint."""
        for key in keys:
            try:
                self.put(key)
            except Exception as error:  # whatever it answers, it does not take the key
                pytest.skip(f"this endpoint refuses the key {key!r}: {error}")
        missing = set(keys) - set(self.keys())
        if missing:
            pytest.skip(f"this endpoint does not keep the key {missing.pop()!r} as it is")

    def delete(self, key):
        self.client.delete_object(Bucket=self.bucket, Key=key)

    def keys(self):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def bulk(self, prefix, count):
        """`count` one-byte objects prefix00000000, prefix00000001, ..."""
        if self.sim:
            self.sim.bulk(self.bucket, prefix, count)
        elif count > 2000:
            pytest.skip(f"{count} objects are only made at s3sim, which has a command for it")
        else:
            for number in range(count):
                self.put(f"{prefix}{number:08}")

    def needs_order(self):
        """Some endpoints walk folder by folder: `a/c` comes before `a-b`, and paging by keys cannot work. They are not what a mount is tested on."""
        keys = self.keys()
        if keys != sorted(keys, key=os.fsencode):
            pytest.skip("this endpoint does not list in S3's order")

    def needs_sim(self, what):
        if not self.sim:
            pytest.skip(f"needs s3sim: {what}")
        return self.sim

    def pace(self, **options):
        """Slower answers where the endpoint is s3sim; elsewhere the test runs at the endpoint's own speed."""
        if self.sim:
            self.sim.options(**options)

    def close(self):
        if self.sim:  # which is thrown away as a whole
            self.sim.faults("")
            self.sim.options(first_byte_ms=0, per_connection=0, total=0)
            return
        keys = self.keys()
        for start in range(0, len(keys), 1000):
            batch = keys[start:start + 1000]
            try:
                self.client.delete_objects(Bucket=self.bucket, Delete={"Objects": [{"Key": key} for key in batch]})
            except self.client.exceptions.ClientError:  # control characters in XML
                for key in batch:
                    self.delete(key)
        if self.own:
            with contextlib.suppress(Exception):  # some endpoints cannot delete each key that they took
                self.client.delete_bucket(Bucket=self.bucket)


class Gate:
    """An HTTP server before an endpoint: `rule(request)` answers None (pass on) or an S3 error code, which is sent with 403.

    The request has .method, .key, .query (dict) and .access_key. The Host header goes on as it came, so signatures stay valid.
    """

    def __init__(self, store, rule):
        self.rule = rule
        self.refused = 0
        target = urllib.parse.urlsplit(store.url)
        if target.scheme != "http":
            pytest.skip("the gate speaks plain http to the endpoint")
        gate = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path, _, query = self.path.partition("?")
                self.method = self.command
                self.key = urllib.parse.unquote(path).removeprefix(f"/{store.bucket}").removeprefix("/")
                self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
                self.access_key = self.headers.get("Authorization", "").partition("Credential=")[2].partition("/")[0]
                code = gate.rule(self)
                if code:
                    gate.refused += 1
                    text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>refused by the gate</Message></Error>".encode()
                    return self.answer(403, [("Content-Type", "application/xml")], text)
                upstream = http.client.HTTPConnection(target.hostname, target.port or 80, timeout=60)
                try:
                    headers = {k: v for k, v in self.headers.items() if k.lower() not in ("connection", "expect")}
                    upstream.request(self.command, self.path, body or None, headers)
                    answer = upstream.getresponse()
                    skip = ("connection", "transfer-encoding", "content-length")
                    kept = [(k, v) for k, v in answer.getheaders() if k.lower() not in skip]
                    self.answer(answer.status, kept, answer.read(), answer.getheader("Content-Length"))
                finally:
                    upstream.close()

            def answer(self, status, headers, body, length=None):
                self.send_response_only(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any

            def log_message(self, *unused):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
