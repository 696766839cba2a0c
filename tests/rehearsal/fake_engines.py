"""Stand-ins for etcd and the Kubernetes programs: real processes with real TLS, that start in a moment.

A file `<program>.mode` beside them makes one misbehave: `exit TEXT` says TEXT and ends, `taken` pretends that the port
was taken, `once …` does so the first time only, `slow SECONDS` waits before it listens.
"""

from __future__ import annotations

import sys
from pathlib import Path

# For a shell and for Python: every start of a rehearsal asks five programs for their versions.
_START = """#!/bin/sh
''':'
case "$1 $0" in
"--version "*/etcd) echo "etcd Version: 3.6.8"; exit ;;
"--version "*/kwok) echo "kwok version v0.8.0"; exit ;;
"--version "*) echo "Kubernetes v1.36.3"; exit ;;
esac
exec {python} -IS "$0" "$@"
'''
"""
_PROGRAM = """
import os, pathlib, sys, time

here, name = pathlib.Path(__file__).parent, pathlib.Path(__file__).name
flags = dict(word[2:].split("=", 1) for word in sys.argv[1:] if "=" in word)
mode_file = here / f"{name}.mode"
mode = mode_file.read_text() if mode_file.exists() else ""
if mode.startswith("once "):
    mode_file.unlink()
    mode = mode.removeprefix("once ")
if mode == "taken":
    mode = f"exit listen tcp 127.0.0.1:{flags.get('secure-port')}: bind: address already in use"
if mode.startswith("exit"):
    sys.exit(mode.removeprefix("exit "))
if mode.startswith("slow"):
    time.sleep(float(mode.split()[1]))
print("started", os.getpid(), flush=True)
if name in ("kube-controller-manager", "kube-scheduler", "kwok"):
    time.sleep(3600)

import base64, json, ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Etcd(BaseHTTPRequestHandler):
    certificate, key, client_ca = flags.get("cert-file"), flags.get("key-file"), flags.get("trusted-ca-file")
    port = flags.get("listen-client-urls", "").rpartition(":")[2]

    def do_GET(self):
        self.answer(200, {})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with (here / "deleted").open("a") as deleted:
            print(*(base64.b64decode(body[field]).decode() for field in ("key", "range_end")), file=deleted)
        self.answer(200, {"deleted": "1"})

    def answer(self, status, body):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


class ApiServer(Etcd):
    certificate, key, client_ca = flags.get("tls-cert-file"), flags.get("tls-private-key-file"), None
    port = flags.get("secure-port")

    def do_GET(self):
        token = pathlib.Path(flags["token-auth-file"]).read_text().split(",")[0]
        self.answer(200 if self.headers.get("Authorization") == f"Bearer {token}" else 401, {})


handler = Etcd if name == "etcd" else ApiServer
server = ThreadingHTTPServer(("127.0.0.1", int(handler.port)), handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(handler.certificate, handler.key)
if handler.client_ca:
    context.load_verify_locations(handler.client_ca)
    context.verify_mode = ssl.CERT_REQUIRED
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")


class FakeEngines:
    """A folder for KUBEBUILDER_ASSETS."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        for name in NAMES:
            (folder / name).write_text(_START.format(python=sys.executable) + _PROGRAM)
            (folder / name).chmod(0o755)

    def misbehaves(self, program: str, mode: str) -> None:
        """From its next start on; see the module."""
        (self.folder / f"{program}.mode").write_text(mode)

    def deleted_ranges(self) -> list[tuple[str, str]]:
        """What etcd was asked to delete: (key, range end)."""
        path = self.folder / "deleted"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(line.split()[0], line.split()[1]) for line in lines]
