"""A stand-in for Go that compiles nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

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
        for path, text in json.loads((here / "sources.json").read_text()).get(module, {}).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        print(json.dumps({"Path": module, "Dir": str(folder)}))
elif arguments[0] == "list" or arguments[-1] == "std":
    print("here")
else:
    with (here / "builds").open("a") as builds:
        environment = {key: value for key, value in os.environ.items() if key.startswith(("GO", "CGO"))}
        here_now = pathlib.Path.cwd()
        files = sorted(str(path.relative_to(here_now)) for path in here_now.rglob("*") if path.is_file())
        builds.write(json.dumps({"arguments": arguments, "environment": environment, "files": files}) + "\\n")
    target = pathlib.Path(arguments[arguments.index("-o") + 1])
    packages = arguments[arguments.index("-o") + 2:]
    if mode.startswith("slow"):
        print("go: downloading example.com/a v1.0.0", file=sys.stderr, flush=True)
        time.sleep(float(mode.split()[1]))
    elif mode:
        (target / "half").write_text("half")
        sys.exit(mode)
    for package in packages:
        *_, before, last = package.split("/")
        program = target / (before if last[1:].isdigit() else last)
        program.write_text(f"built {package}")
        program.chmod(0o755)
"""
_HEAD = 'package x\n\nimport (\n\t"context"\n%s)\n\nfunc use(context.Context) {}\n'
SOURCES = {
    "github.com/pulumi/pulumi-kubernetes/provider/v4": {
        "pkg/await/await.go": _HEAD % '\t"sigs.k8s.io/structured-merge-diff/v4/fieldpath"\n'
        + "\tfieldpath.MakePath()\n",
    },
    "github.com/pulumi/pulumi-kubernetes/sdk/v4": {
        "go/kubernetes/yaml/v2/kinds.go": _HEAD % '\tcorev1 "example.com/sdk/core/v1"\n\t"example.com/pulumi"\n'
        + "\tvar res corev1.Pod\n\tvar res apiextensions.CustomResource\n",
    },
    "github.com/pulumi/pulumi/pkg/v3": {
        "backend/diy/backend.go": _HEAD % '\t_ "gocloud.dev/blob/s3blob" // for s3://\n\t"gocloud.dev/blob/gcsblob"\n'
        + "\n\tif p.Scheme == gcsblob.Scheme {\n\t\tmux()\n\t}\n",
        "backend/diy/bucket.go": _HEAD % ""
        + "\tbeforeCopy := optsCopy.BeforeCopy\n\toptsCopy.BeforeCopy = func() {\n\t}\n"
        + "\nfunc fixupS3CopySource() {\n}\n",
        "secrets/cloud/manager.go": _HEAD % '\t_ "gocloud.dev/secrets/awskms"\n'
        + "\tcase gcpkms.Scheme:\n\t\tdial()\n\tdefault:\n",
        "operations/resources.go": _HEAD % "" + '\tcase "aws":\n\t\treturn 1\n\tdefault:\n',
        "operations/operations_aws.go": "// Text.\npackage operations\n\nfunc aws() {}\n",
        "operations/operations_gcp.go": "// Text.\npackage operations\n\nfunc gcp() {}\n",
    },
    "github.com/open-policy-agent/cert-controller": {
        "pkg/rotator/rotator.go": _HEAD % '\t"os"\n'
        + "\t\tif err := injectCert(updatedResource, certPem, webhook.Type); err != nil {\n\t\t\tcontinue\n\t\t}\n"
        + "\t\tif err := r.writer.Update(r.ctx, updatedResource, opts...); err != nil {\n\t\t}\n\tos.Exit(1)\n",
    },
    "sigs.k8s.io/jobset": {
        f"pkg/webhooks/{name}.go": _HEAD % ""
        + "\tctrl.NewWebhookManagedBy(mgr).\n\t\tFor(&api.JobSet{}).\n\t\tWithDefaulter(j).\n\t\tWithValidator(j)\n"
        for name in ("jobset_webhook", "pod_mutating_webhook")
    },
    "github.com/ray-project/kuberay/ray-operator": {
        f"pkg/webhooks/v1/{name}_webhook.go": _HEAD % ""
        + "\tctrl.NewWebhookManagedBy(mgr).\n\t\tFor(&ray.RayJob{}).\n\t\tWithValidator(&RayJobWebhook{})\n"
        for name in ("raycluster", "rayjob", "rayservice")
    },
}
"""What the modules have that are built with changes, by module and path."""


class FakeGo:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "go").write_text(f"#!{sys.executable}\n{FAKE_GO}")
        (folder / "go").chmod(0o755)
        (folder / "sources.json").write_text(json.dumps(SOURCES))

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": str(self.folder), "HOME": "/nowhere", "GOFLAGS": "-tags=surprise"}

    def fails(self, mode: str) -> None:
        (self.folder / "mode").write_text(mode)

    def builds(self) -> list[dict[str, Any]]:
        path = self.folder / "builds"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
