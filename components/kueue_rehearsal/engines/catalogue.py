"""Which programs a rehearsal runs, where their sources are, and which of their files it needs.

The exact versions are in the committed go.mod files beside this module, which reads them there, so that a version is
written down once. Nearly all engines are built from one go.mod, in the folder `shared`: Go compiles a package once for
all of them. The others need some module in another version.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from kueue_rehearsal.engines.patched import PATCHED, PatchedModule

SOURCES = Path(__file__).parent
"""Folder with a folder for each go.mod."""
SHARED = "shared"
"""The go.mod of the engines that are compiled with the same version of every package."""


@dataclass(frozen=True, slots=True)
class Asset:
    """A file or folder taken from a Go module as it is."""

    name: str
    module: str
    """The module that carries it, in the version the engine's go.mod names."""
    path: str
    """Inside the module."""


class LoneChart(Asset):
    """A Helm chart without the charts that it depends on, which are not in the module; the values leave them out."""


@dataclass(frozen=True)
class Engine:
    """Programs that a rehearsal, or a test, needs together."""

    name: str
    module: str
    binaries: tuple[tuple[str, str], ...]
    """(name of the program, its Go package)"""
    build_seconds: int
    """Measured on 2 cores with an empty build cache, after the engines before it; only for the progress shown."""
    build_gib: float
    """Disk that its modules and Go's build cache need, when both are empty, after the engines before it."""
    go_mod: str = SHARED
    """The folder of the go.mod that it is built from."""
    version_flags: tuple[str, ...] = ()
    """Go variables that hold the version; the version itself is appended."""
    extra_flags: tuple[str, ...] = ()
    """Other linker flags."""
    release: str = ""
    """The version, where the module has no tag for it."""
    embedded: tuple[Asset, ...] = ()
    """What a program of ours embeds, put beside its source for the build; `name` is a path from the go.mod."""
    accepts: str = ""
    """A found program is used when its version begins so; empty: exactly the version of go.mod.

    `.` is added by the caller of the rule, so "1.36" fits 1.36.3 and not 1.360.
    """
    own_first: bool = False
    """A found program is used whatever its version is, as Pulumi uses its user's plugins."""
    version_command: tuple[str, ...] = ()
    """Arguments that print the version; empty: the version is read from Go's build information in the file."""
    assets: tuple[Asset, ...] = field(default=())
    for_rehearsal: bool = True
    """Whether every rehearsal needs it; the others are for some fleets, or for tests of the examples."""
    operator: str = ""
    """The field below `operators` of the fleet file whose fleets need it."""
    kueue_release: str = ""
    """The minor release of Kueue, such as "0.18", whose clusters need it; empty: every fleet does, or none."""

    @property
    def for_some_fleets(self) -> bool:
        """Whether only fleets with an operator, or with another release of Kueue, need it."""
        return bool(self.operator or self.kueue_release)

    @cached_property
    def folder(self) -> Path:
        """The folder with the engine's go.mod and go.sum."""
        return SOURCES / self.go_mod

    @cached_property
    def version(self) -> str:
        """The version of `module` in go.mod, such as `v1.36.3`, or the release that this is."""
        return self.release or module_version((self.folder / "go.mod").read_text(), self.module)

    @property
    def linker_flags(self) -> str:
        """The value of -ldflags: no symbols, and the version where the program expects it."""
        versions = (f"-X {variable}={self.version}" for variable in self.version_flags)
        return " ".join(("-s", "-w", *versions, *self.extra_flags))

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The files that Go needs, from the folder of go.mod: that, go.sum, and for a program of ours its source."""
        main = module_path(self.folder)
        own = (package.removeprefix(main).strip("/") for _, package in self.binaries if package.startswith(main))
        programs = (path for folder in own for path in (self.folder / folder).glob("*.go"))
        return ("go.mod", "go.sum", *sorted(str(path.relative_to(self.folder)) for path in programs))

    @property
    def patched(self) -> tuple[PatchedModule, ...]:
        """The modules of which the build has a changed copy."""
        if self.go_mod != SHARED:
            return ()
        return tuple(module for module in PATCHED if not module.engines or self.name in module.engines)

    def source_hash(self) -> str:
        """A hash of everything that decides what is built, apart from the Go release."""
        digest = hashlib.sha256()
        for name in self.sources:
            digest.update((self.folder / name).read_bytes())
            digest.update(b"\0")
        decides = (self.binaries, self.linker_flags, BUILD_FLAGS, BUILD_ENVIRONMENT, self.patched, *self.embedded)
        digest.update(repr(decides).encode())
        return digest.hexdigest()[:16]

    def assets_hash(self) -> str:
        """A hash of everything that decides which assets are copied."""
        digest = hashlib.sha256((self.folder / "go.mod").read_bytes())
        digest.update(repr(self.assets).encode())
        return digest.hexdigest()[:16]


# No debugger is used on an engine, and a sixth of the compiler's time goes into what it would read.
BUILD_FLAGS = ("-mod=readonly", "-trimpath", "-gcflags=all=-dwarf=false")
"""Flags of every `go build`."""
# What would otherwise let the user's settings decide what is built.
BUILD_ENVIRONMENT = {"CGO_ENABLED": "0", "GOEXPERIMENT": "", "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"}
"""Variables of every `go build`, over the user's own."""


def module_path(folder: Path) -> str:
    """What the go.mod in a folder calls its module."""
    return (folder / "go.mod").read_text().split(maxsplit=2)[1]


def module_version(go_mod: str, module: str) -> str:
    """The version of `module` in the text of a go.mod, replacements considered.

    Raises LookupError when go.mod does not name the module.
    """
    required_version = None
    for line in go_mod.splitlines():
        words = line.removeprefix("require").removeprefix("replace").split("//")[0].split()
        if len(words) == 4 and words[0] == module and words[1] == "=>":
            return words[3]
        if len(words) == 2 and words[0] == module and words[1].startswith("v"):
            required_version = words[1]
    if required_version is None:
        raise LookupError(f"go.mod does not require {module}")
    return required_version


_KUEUE = "sigs.k8s.io/kueue"
# Kueue's visibility server keeps its certificate in /visibility, which in a container is the pod's own. Built so, it
# keeps it in that folder below the process's current one.
KUEUE_VISIBILITY_FLAG = "-X sigs.k8s.io/kueue/pkg/visibility.certDir=visibility"
"""Linker flag that lets Kueue write the certificates of its visibility server."""
_JOBSET = "sigs.k8s.io/jobset"
_KUBERAY = "github.com/ray-project/kuberay"
_LWS = "sigs.k8s.io/lws"
_TRAINER = "github.com/kubeflow/trainer/v2"
_PULUMI_KUBERNETES = "github.com/pulumi/pulumi-kubernetes/provider/v4"
_PROVISIONING_REQUEST_CRD = Asset(
    "provisioning-request-crd",
    "k8s.io/autoscaler/cluster-autoscaler/apis",
    "config/crd/autoscaling.x-k8s.io_provisioningrequests.yaml",
)


def _kueue(release: str) -> Engine:
    """Kueue of a minor release with its chart and definitions; of "", the one that fleets get by default."""
    name = f"kueue-{release}" if release else "kueue"
    return Engine(
        name=name,
        module=_KUEUE,
        binaries=((name, "sigs.k8s.io/kueue/cmd/kueue"),),
        build_seconds=60,
        build_gib=0.6,
        go_mod=name if release else SHARED,
        version_flags=("sigs.k8s.io/kueue/pkg/version.GitVersion",),
        extra_flags=(KUEUE_VISIBILITY_FLAG,),
        assets=(
            Asset(f"{name}-chart", _KUEUE, "charts/kueue"),
            Asset(f"{name}-crds", _KUEUE, "config/components/crd/bases"),
            *(() if release else (_PROVISIONING_REQUEST_CRD,)),
        ),
        for_rehearsal=not release,
        kueue_release=release,
    )


ENGINES: tuple[Engine, ...] = (
    Engine(
        name="etcd",
        module="go.etcd.io/etcd/server/v3",
        binaries=(("etcd", "go.etcd.io/etcd/server/v3"),),
        build_seconds=45,
        build_gib=0.9,
        accepts="3.6",
        version_command=("--version",),
    ),
    Engine(
        name="kubernetes",
        module="k8s.io/kubernetes",
        binaries=tuple(
            (name, f"k8s.io/kubernetes/cmd/{name}")
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
        ),
        build_seconds=235,
        build_gib=2.6,
        version_flags=("k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"),
        extra_flags=("-X k8s.io/component-base/version.gitMajor=1", "-X k8s.io/component-base/version.gitMinor=36"),
        accepts="1.36",
        version_command=("--version",),
    ),
    _kueue(""),
    Engine(
        name="jobset",
        module=_JOBSET,
        binaries=(("jobset", "sigs.k8s.io/jobset"),),
        build_seconds=5,
        build_gib=0.1,
        assets=(Asset("jobset-chart", _JOBSET, "charts/jobset"),),
    ),
    Engine(
        name="kuberay",
        module=f"{_KUBERAY}/ray-operator",
        binaries=(("kuberay", f"{_KUBERAY}/ray-operator"),),
        build_seconds=20,
        build_gib=0.2,
        assets=(Asset("kuberay-chart", _KUBERAY, "helm-chart/kuberay-operator"),),
        for_rehearsal=False,
        operator="kubeRay",
    ),
    Engine(
        name="lws",
        module=_LWS,
        binaries=(("lws", f"{_LWS}/cmd"),),
        build_seconds=15,
        build_gib=0.1,
        version_flags=(f"{_LWS}/pkg/version.GitVersion",),
        assets=(Asset("lws-chart", _LWS, "charts/lws"),),
        for_rehearsal=False,
        operator="leaderWorkerSet",
    ),
    Engine(
        name="trainer",
        module=_TRAINER,
        binaries=(("trainer", f"{_TRAINER}/cmd/trainer-controller-manager"),),
        build_seconds=20,
        build_gib=0.2,
        assets=(LoneChart("trainer-chart", _TRAINER, "charts/kubeflow-trainer"),),
        for_rehearsal=False,
        operator="trainer",
    ),
    Engine(
        name="kwok",
        module="sigs.k8s.io/kwok",
        binaries=(("kwok", "sigs.k8s.io/kwok/cmd/kwok"),),
        build_seconds=15,
        build_gib=0.2,
        version_flags=("sigs.k8s.io/kwok/pkg/consts.Version",),
        version_command=("--version",),
    ),
    Engine(
        name="helm",
        module="helm.sh/helm/v3",
        binaries=(("helm", "helm.sh/helm/v3/cmd/helm"),),
        build_seconds=20,
        build_gib=0.3,
        version_flags=("helm.sh/helm/v3/internal/version.version",),
        # What `helm template` takes as the Kubernetes version when it has no cluster to ask.
        extra_flags=(
            "-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1",
            "-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=36",
        ),
        accepts="3",
        version_command=("version", "--short"),
        for_rehearsal=False,
    ),
    Engine(
        name="pulumi",
        module="github.com/pulumi/pulumi/pkg/v3",
        binaries=(("pulumi", "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"),),
        build_seconds=110,
        build_gib=1.2,
        version_flags=("github.com/pulumi/pulumi/sdk/v3/go/common/version.Version",),
        accepts="3",
        version_command=("version",),
    ),
    Engine(
        name="pulumi-kubernetes",
        module=_PULUMI_KUBERNETES,
        binaries=(("pulumi-resource-kubernetes", "kueue-fleet.dev/engines/shared/pulumi-resource-kubernetes"),),
        build_seconds=25,
        build_gib=0.4,
        version_flags=(f"{_PULUMI_KUBERNETES}/pkg/version.Version",),
        # Of the commit in go.mod, which is the newest that can be downloaded.
        release="v4.25.0",
        own_first=True,
        embedded=(
            Asset(
                "pulumi-resource-kubernetes/schema.json",
                _PULUMI_KUBERNETES,
                "cmd/pulumi-resource-kubernetes/schema.json",
            ),
        ),
    ),
    Engine(
        name="pulumi-yaml",
        module="github.com/pulumi/pulumi-yaml",
        binaries=(("pulumi-language-yaml", "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml"),),
        go_mod="pulumi-yaml",
        build_seconds=20,
        build_gib=0.3,
        version_flags=("github.com/pulumi/pulumi-yaml/pkg/version.Version",),
        accepts="1",
        for_rehearsal=False,
    ),
    Engine(
        name="pulumi-nodejs",
        # The real host's module cannot be downloaded; ours joins Pulumi's own generator and Pulumi's own Node.js SDK.
        module="github.com/pulumi/pulumi/pkg/v3",
        binaries=(("pulumi-language-nodejs", "kueue-fleet.dev/engines/shared/pulumi-language-nodejs"),),
        build_seconds=10,
        build_gib=0.2,
        version_flags=("main.Version",),
        accepts="3",
        for_rehearsal=False,
    ),
    Engine(
        name="prometheus",
        # promtool's modules cannot all be downloaded; ours is Prometheus' own engine behind JSON on stdin.
        module="github.com/prometheus/prometheus",
        binaries=(("promql", "kueue-fleet.dev/engines/prometheus"),),
        go_mod="prometheus",
        build_seconds=60,
        build_gib=0.5,
        for_rehearsal=False,
    ),
    *map(_kueue, ("0.17", "0.18")),
)
"""Everything that is built from Go modules."""
REHEARSAL_ENGINES = tuple(engine.name for engine in ENGINES if engine.for_rehearsal)
"""Names of those that every rehearsal runs."""
KUEUE_ENGINES = {
    (engine.kueue_release or engine.version[1:].rpartition(".")[0]): engine.name
    for engine in ENGINES
    if engine.module == _KUEUE
}
"""Names of Kueue's engines by minor release, such as "0.18"."""
OPERATOR_ENGINES = {engine.operator: engine.name for engine in ENGINES if engine.operator}
"""Names of those that a rehearsal runs where the fleet has an operator, by its field in the fleet file."""
