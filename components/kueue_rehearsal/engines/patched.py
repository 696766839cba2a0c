"""Go modules that are built with a few lines changed, so that a build compiles half of the source.

A third of the source behind Pulumi and its Kubernetes provider serves other clouds, or Go programs; and two programs
use older libraries than Kubernetes and Kueue, which Go would have to compile once more. A build has copies of these
modules, with a `replace` in its copy of go.mod:

- The Kubernetes provider imports its own Go SDK, 26 MB, for one switch from kinds to the SDK's classes. Here the switch
  makes an untyped resource of the same type token, so that a ConfigFile, a ConfigGroup and a Chart of helm.sh/v4
  register the same resources. The provider also has Kubernetes 1.36's version of the path sets of server-side apply.
- Pulumi imports the clients of AWS, Azure, Google Cloud and Vault, 26 MB, for state in their buckets, for secrets by
  their keys, and for `pulumi logs`. A rehearsal has its state in a folder and its secrets by a passphrase. With another
  backend or provider of secrets this Pulumi ends with an error that names those which it has.
- Each replica of Kueue writes its certificate authority into five CRDs and two webhook configurations again whenever
  one of them changes. The API server drops a write that changes nothing; this build does not send it.
- JobSet and KubeRay register their webhooks as the controller-runtime of Kueue takes them.

`go mod download` checks the modules before they are copied. Edits are patterns: where one no longer matches, the build
ends with its name.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kueue_rehearsal.paths import RehearsalError

FOLDER = "patched"
"""Beside go.mod, the folder with the copies."""
_IMPORT = re.compile(r'^\t(?:(?P<name>\w+) )?"(?P<path>[\w./-]+)"(?:[ \t]*//.*)?\n', re.MULTILINE)
_NOT_COPIED = {"testdata"}


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one file: every match of a pattern, of which there is at least one."""

    file: str
    pattern: str
    """A regular expression in which `.` matches the end of a line too."""
    replacement: str


@dataclass(frozen=True, slots=True)
class PatchedModule:
    """A Go module, and what differs in its copy. Imports that nothing uses any more go by themselves."""

    module: str
    edits: tuple[Edit, ...]
    engines: tuple[str, ...] = field(default=(), repr=False)
    """The engines that have it; the builds of others do not depend on it. Default: all of the shared go.mod."""

    @property
    def folder(self) -> str:
        """Where its copy is, below the folder of go.mod."""
        return f"{FOLDER}/{self.module.replace('/', '_')}"

    @property
    def replacement(self) -> str:
        """Its line in go.mod."""
        return f"replace {self.module} => ./{self.folder}\n"


def _untyped_webhook(file: str, *, defaults: bool = False) -> Edit:
    """Registers a webhook as controller-runtime takes it from 0.23 on: of a type, but with methods for any object."""
    defaulter = (r"\s+WithDefaulter\((?P<d>\w)\)\.", r"WithCustomDefaulter(\g<d>).") if defaults else ("", "")
    return Edit(
        file,
        rf"NewWebhookManagedBy\(mgr\)\.\s+For\((?P<t>\S+)\)\.{defaulter[0]}\s+WithValidator\((?P<v>\S+)\)",
        rf"NewWebhookManagedBy(mgr, \g<t>).{defaulter[1]}WithCustomValidator(\g<v>)",
    )


PATCHED = (
    PatchedModule(
        "github.com/pulumi/pulumi-kubernetes/provider/v4",
        (
            Edit(
                "pkg/await/await.go",
                r"sigs\.k8s\.io/structured-merge-diff/v4/",
                "sigs.k8s.io/structured-merge-diff/v6/",
            ),
        ),
    ),
    PatchedModule(
        "github.com/pulumi/pulumi-kubernetes/sdk/v4",
        (
            Edit(
                "go/kubernetes/yaml/v2/kinds.go",
                r"\bvar res (?!apiextensions\.)\w+\.\w+\n",
                "var res pulumi.CustomResourceState\n",
            ),
        ),
    ),
    PatchedModule(
        "github.com/pulumi/pulumi/pkg/v3",
        (
            Edit("backend/diy/backend.go", r'\t_ "gocloud\.dev/blob/(azure|s3)blob".*?\n', ""),
            Edit("backend/diy/backend.go", r"\n\tif p\.Scheme == gcsblob\.Scheme {.*?\n\t}\n", ""),
            Edit("backend/diy/bucket.go", r"\toptsCopy\.BeforeCopy = func.*?\n\t}\n", ""),
            Edit("backend/diy/bucket.go", r"\tbeforeCopy := optsCopy\.BeforeCopy\n", ""),
            Edit("backend/diy/bucket.go", r"\nfunc fixupS3CopySource.*?\n}\n", ""),
            Edit("secrets/cloud/manager.go", r'\t_ "gocloud\.dev/secrets/(awskms|azurekeyvault|hashivault)".*?\n', ""),
            Edit("secrets/cloud/manager.go", r"\tcase gcpkms\.Scheme:.*?(?=\tdefault:\n)", ""),
            Edit("operations/resources.go", r'\tcase "aws":.*?(?=\tdefault:\n)', ""),
            Edit("operations/operations_aws.go", r".*\n(package operations\n).*", r"\1"),
            Edit("operations/operations_gcp.go", r".*\n(package operations\n).*", r"\1"),
        ),
    ),
    PatchedModule(
        "github.com/open-policy-agent/cert-controller",
        (
            Edit("pkg/rotator/rotator.go", r'\t"os"\n', '\t"os"\n\t"reflect"\n'),
            Edit(
                "pkg/rotator/rotator.go",
                r"(\t\tif err := injectCert\(.*?\n\t\t}\n)",
                r"\t\tbefore := updatedResource.DeepCopy()\n"
                r"\1\t\tif reflect.DeepEqual(before, updatedResource) {\n\t\t\tcontinue\n\t\t}\n",
            ),
        ),
        engines=("kueue", "jobset", "lws", "trainer"),
    ),
    PatchedModule(
        "sigs.k8s.io/jobset",
        tuple(
            _untyped_webhook(f"pkg/webhooks/{kind}_webhook.go", defaults=True) for kind in ("jobset", "pod_mutating")
        ),
    ),
    PatchedModule(
        "github.com/ray-project/kuberay/ray-operator",
        tuple(
            _untyped_webhook(f"pkg/webhooks/v1/{kind}_webhook.go") for kind in ("raycluster", "rayjob", "rayservice")
        ),
    ),
)
"""In the order in which they are copied."""


def copy_patched(module: PatchedModule, source: Path, target: Path) -> None:
    """Copies a module without its tests, and edits the copy.

    Raises RehearsalError where an edit matches nothing.
    """
    shutil.copytree(source, target, ignore=_left_out, copy_function=shutil.copyfile)
    for folder in (target, *(path for path in target.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    for edit in module.edits:
        path = target / edit.file
        before = path.read_text()
        text, count = re.subn(edit.pattern, edit.replacement, before, flags=re.DOTALL)
        if not count:
            raise RehearsalError(f"{module.module}: {edit.file} has no {edit.pattern!r}; edit engines/patched.py")
        path.write_text(_without_imports(text, _names_in_code(before) - _names_in_code(text)))


def _left_out(folder: str, names: Iterable[str]) -> set[str]:
    return {name for name in names if name in _NOT_COPIED or name.endswith("_test.go")}


def _split(text: str) -> tuple[str, str]:
    """A Go file up to the end of its imports, and the rest."""
    start = text.find("\nimport (")
    end = text.index("\n)\n", start) if start >= 0 else 0
    return text[:end], text[end:]


def _names_in_code(text: str) -> set[str]:
    return set(re.findall(r"\b(\w+)\.", _split(text)[1]))


def _without_imports(text: str, names: set[str]) -> str:
    """A Go file without the imports of these names; Go refuses an import that nothing uses."""

    def keep(entry: re.Match[str]) -> str:
        name = entry["name"] or re.sub(r"/v\d+$", "", entry["path"]).rpartition("/")[2]
        return "" if name in names else entry[0]

    head, code = _split(text)
    return _IMPORT.sub(keep, head) + code
