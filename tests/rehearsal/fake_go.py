"""A stand-in for Go that compiles nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

# A go that writes down what it is asked, and "builds" by writing a text; FAKE_GO says how it should fail.
FAKE_GO = """
import json, os, pathlib, sys, time
here = pathlib.Path(__file__).parent
arguments = sys.argv[1:]
mode = (here / "mode").read_text() if (here / "mode").exists() else ""
if arguments[0] == "env":
    caches = {"GOCACHE": str(here / "gocache"), "GOMODCACHE": str(here / "gomod")}
    print(json.dumps({"GOVERSION": "go1.26.8", **caches}))
elif arguments[:2] == ["version", "-m"]:
    print(arguments[2], "go1.26.8")
    print("\\tmod\\texample.com/program\\tv1.0.0\\th1:x")
    print("\\tdep\\texample.com/part\\tv2.0.0\\th1:y")
elif arguments[:2] == ["mod", "download"]:
    for module in arguments[3:]:
        folder = here / "gomod" / module
        for path in ("LICENSE", "charts/kueue/values.yaml", "charts/jobset/values.yaml",
                     "config/components/crd/bases/a.yaml", "config/crd/bases/a.yaml",
                     "charts/lws/Chart.yaml", "charts/kubeflow-trainer/Chart.yaml",
                     "helm-chart/kuberay-operator/Chart.yaml", "cmd/pulumi-resource-kubernetes/schema.json",
                     "config/crd/autoscaling.x-k8s.io_provisioningrequests.yaml"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            if not (folder / path).exists():
                text = "name: trainer\\ndependencies: [{name: jobset}]" if "trainer/" in path else "a: 1"
                (folder / path).write_text(text)
                (folder / path).chmod(0o444)
        print(json.dumps({"Path": module, "Dir": str(folder)}))
else:
    with (here / "builds").open("a") as builds:
        environment = {key: value for key, value in os.environ.items() if key.startswith(("GO", "CGO"))}
        files = sorted(path.name for path in pathlib.Path.cwd().iterdir() if not path.name.startswith("stdout"))
        builds.write(json.dumps({"arguments": arguments, "environment": environment, "files": files}) + "\\n")
    target = pathlib.Path(arguments[arguments.index("-o") + 1])
    if mode.startswith("slow"):
        print("go: downloading example.com/a v1.0.0", file=sys.stderr, flush=True)
        time.sleep(float(mode.split()[1]))
    elif mode:
        target.write_text("half")
        sys.exit(mode)
    target.write_text(f"built {target.name}")
    target.chmod(0o755)
"""


class FakeGo:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "go").write_text(f"#!{sys.executable}\n{FAKE_GO}")
        (folder / "go").chmod(0o755)

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": str(self.folder), "HOME": "/nowhere", "GOFLAGS": "-tags=surprise"}

    def fails(self, mode: str) -> None:
        (self.folder / "mode").write_text(mode)

    def builds(self) -> list[dict[str, object]]:
        path = self.folder / "builds"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
