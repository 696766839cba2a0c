"""A stand-in for Pulumi: `up` has the supervisor make the cluster `solo`, and begins a release of Helm there.

`FakeEngines.misbehaves("pulumi", "slow SECONDS")` has a child of its own work on the release for so long; after
`exit TEXT` it says TEXT and fails.
"""

from __future__ import annotations

import sys
from pathlib import Path

_PROGRAM = """#!{python} -IS
import http.client, json, os, pathlib, shutil, signal, socket, subprocess, sys

here = pathlib.Path(__file__).parent
locks = pathlib.Path(os.environ["PULUMI_BACKEND_URL"].removeprefix("file://"), ".pulumi/locks")
if sys.argv[1] == "cancel":
    shutil.rmtree(locks)
if sys.argv[1] != "up":
    sys.exit()


class Supervisor(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ["KUEUE_FLEET_SUPERVISOR"])


def tell(event):
    urn = "urn:pulumi:tiny::kueue-fleet::kubernetes:helm.sh/v3:Release::tiny/solo/kueue"
    one = dict(metadata=dict(op="create", urn=urn, type="kubernetes:helm.sh/v3:Release"))
    print(json.dumps({{event: one}}, separators=(",", ":")), file=events, flush=True)


signal.signal(signal.SIGTERM, lambda *_: sys.exit("cancelled"))
events = open(next(word for word in sys.argv if word.startswith("--event-log=")).partition("=")[2], "w")
lock = locks / "organization/kueue-fleet/tiny/c0ffee.json"
lock.parent.mkdir(parents=True)
lock.write_text(json.dumps(dict(pid=os.getpid())))
try:
    supervisor = Supervisor("localhost")
    place = dict(project="my-gcp-project", location="us-east4", autopilot=True)
    supervisor.request("PUT", "/clusters/solo", json.dumps(place), {{"Content-Type": "application/json"}})
    if (answer := supervisor.getresponse()).status != 200:
        sys.exit(answer.read().decode())
    tell("resourcePreEvent")
    how, _, what = (here / "pulumi.mode").read_text().partition(" ")
    if how == "exit":
        sys.exit(what)
    subprocess.run(["sleep", what], check=True)
    tell("resOutputsEvent")
finally:
    lock.unlink()
"""


def write_fake_pulumi(folder: Path) -> None:
    """Puts it beside the stand-ins of the engines, with a provider that is never started."""
    for name, program in (("pulumi", _PROGRAM.format(python=sys.executable)), ("pulumi-resource-kubernetes", "")):
        (folder / name).write_text(program)
        (folder / name).chmod(0o755)
