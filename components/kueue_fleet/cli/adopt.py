"""`import`: a fleet file from clusters that exist already."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast, get_args

import typer

from kueue_admission.cli import console, options
from kueue_admission.cli.input_files import is_there, read_text, read_what_can_be, well_formed, write_text
from kueue_admission.kernel import SpecError
from kueue_admission.kernel.yaml_text import YamlDocument, dump_yaml, load_documents, load_yaml
from kueue_fleet.adopt import Adopted, AdoptedCluster, Identity, Mode, adopt_fleet, description_problems, mode_of
from kueue_fleet.adopt.pools import region_of_pools
from kueue_fleet.cli.contexts import Kubeconfig
from kueue_fleet.cli.init import project_around
from kueue_fleet.fleet_file import check_fleet, parse_fleet
from kueue_fleet.fleet_file.parse import PULUMI_KEY
from kueue_fleet.fleet_file.starter import ROTATE_AFTER
from kueue_fleet.gke.google_syntax import gke_cluster_name
from kueue_fleet.gke.zones import region_at

if TYPE_CHECKING:
    from kueue_fleet.pulumi_import import ImportPlan

_STACK_FILE: Final = re.compile(r"Pulumi\..+\.ya?ml")
_Kubernetes = Annotated[
    list[str] | None,
    typer.Option(
        "--kubernetes",
        metavar="CLUSTER",
        help="A cluster that is not of GKE; its nodes are read too where they are among its objects.",
    ),
]
_Regions = Annotated[
    list[str] | None,
    typer.Option(
        "--region",
        metavar="[CLUSTER=]REGION",
        help="Region of a cluster without --description; alone: of all of them.",
        show_default="where its node pools are",
    ),
]
_Descriptions = Annotated[
    list[str] | None,
    typer.Option(
        "--description",
        metavar="CLUSTER=FILE",
        help="Output of `gcloud container clusters describe CLUSTER --format yaml`: region, mode, node pools and "
        "settings of the cluster.",
    ),
]
_NodePools = Annotated[
    list[str] | None,
    typer.Option(
        "--node-pools",
        metavar="CLUSTER=FILE",
        help="Output of `gcloud container node-pools list --cluster CLUSTER --format yaml`, for Standard clusters.",
    ),
]
_Modes = Annotated[
    list[str] | None,
    typer.Option(
        "--mode",
        metavar="[CLUSTER=]MODE",
        help="Autopilot or Standard, for clusters without --node-pools; alone: of all of them.",
    ),
]
_PulumiImport = Annotated[
    Path | None,
    typer.Option(
        "--pulumi-import",
        metavar="FILE",
        help="Let Pulumi manage the clusters and node pools themselves too: write FILE for `pulumi import --file`. "
        "Each cluster needs --description.",
    ),
]
_RotateBy = Annotated[
    datetime | None,
    typer.Option(
        "--rotate-by",
        formats=["%Y-%m-%d"],
        metavar="YYYY-MM-DD",
        help="Day by which worker credentials are to be replaced.",
        show_default="90 days from now",
    ),
]


def import_(
    context: typer.Context,
    objects: Annotated[
        list[str],
        typer.Argument(
            metavar="CLUSTER[=PATH]...",
            help="For each cluster its name and a YAML or JSON file, or folder, of its objects; the name alone: they "
            "are read through the context of that name.",
        ),
    ],
    name: Annotated[str, typer.Option("--name", help="Name of the fleet.")],
    project: Annotated[
        str, typer.Option("--project", help="Google Cloud project id; not needed if no cluster is of GKE.")
    ] = "",
    kubernetes: _Kubernetes = None,
    kubeconfig: Kubeconfig = None,
    region: _Regions = None,
    description: _Descriptions = None,
    node_pools: _NodePools = None,
    mode: _Modes = None,
    default_kueue: Annotated[
        bool,
        typer.Option(
            "--default-kueue",
            help="Where the objects do not have Kueue's version or Configuration: the defaults of a fleet file.",
        ),
    ] = False,
    new: Annotated[
        bool,
        typer.Option("--new", help="Describe clusters to be made, like these; default: these are taken over in place."),
    ] = False,
    pulumi_import: _PulumiImport = None,
    rotate_by: _RotateBy = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; default: print it.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Write a fleet file whose rendering gives the objects that clusters have now.

    The cluster with MultiKueueCluster objects is the manager, the others are its workers. Nothing on a cluster
    changes. In the file these clusters and their node pools exist: `pulumi up` makes and replaces none of them, and
    takes over the objects in them. With --pulumi-import it takes over the clusters and node pools too, but for those
    that it would have to replace; the command lists what the first `pulumi up` changes of them. It asks for what no
    object says, and names every object that the file leaves out or would change. Afterwards `kueue-fleet check` says
    what is wrong with the platform, and `kueue-fleet render` what would be applied.

    \b
    Examples:
      mkdir batch && for kind in resourceflavors topologies cohorts \\
          clusterqueues localqueues admissionchecks \\
          provisioningrequestconfigs multikueueclusters multikueueconfigs \\
          workloadpriorityclasses priorityclasses namespaces \\
          serviceaccounts resourcequotas limitranges roles rolebindings \\
          validatingadmissionpolicies \\
          persistentvolumes persistentvolumeclaims; \\
          do kubectl get $kind -A -o yaml > batch/$kind.yaml; done
      kubectl get configmaps,deployments -n kueue-system -o yaml \\
          > batch/kueue.yaml
      kueue-fleet import batch=batch/ --name batch --project my-project \\
          --region us-central1 --mode Autopilot -o fleet.yaml
      kueue-fleet import manager=m.yaml worker-us=us.yaml --name ml \\
          --project my-project --region manager=europe-west4 \\
          --region us-east4 --mode manager=Autopilot \\
          --node-pools worker-us=us-pools.yaml
      kueue-fleet import lab --name lab --kubernetes lab -o fleet.yaml
      gcloud container clusters describe batch --region us-central1 \\
          --format yaml > batch.yaml
      kueue-fleet import batch=batch/ --name batch --project my-project \\
          --description batch=batch.yaml --pulumi-import import.json \\
          -o Pulumi.batch.yaml
    """
    if str(output) == "-":
        output = None
    if output is None:
        options.refuse_idle(context, "force", "without --output FILE")
    if output is not None and pulumi_import is not None and output.absolute() == pulumi_import.absolute():
        raise console.mistyped(f"--pulumi-import: {output} is what --output writes too; give two files")
    for file in (output, pulumi_import):
        if file is not None and is_there(file) and not force:
            raise console.CommandError(f"{file}: already exists; give another name, or --force to replace it")
    paths = _paths(objects)
    if kubeconfig is not None and all(paths.values()):
        raise console.mistyped("--kubeconfig: no cluster is read live; give CLUSTER without a path, or leave it out")
    descriptions = _descriptions(_named("--description", description or []), paths)
    outside = dict.fromkeys(kubernetes or [], "")
    _refuse_unknown("--kubernetes", outside, paths)
    _refuse_twice("--kubernetes", outside, descriptions)
    of_gke = {cluster: path for cluster, path in paths.items() if cluster not in outside}
    if of_gke and not project:
        raise console.mistyped(f"--project: is missing, and {next(iter(of_gke))} is of GKE; give it, or --kubernetes")
    _refuse_undescribed(of_gke, descriptions, pulumi_import, output, new=new)

    def objects_of(cluster: str) -> list[Mapping[str, Any]]:
        if path := paths[cluster]:
            return _read_manifests(Path(path))
        from kueue_fleet.cli.live_import import read_live

        return read_live(cluster, kubeconfig)

    clusters = _clusters(objects_of, of_gke, descriptions, region or [], node_pools or [], mode or [])
    clusters += [AdoptedCluster(item, "", objects_of(item), outside_gke=True) for item in outside]
    clusters.sort(key=lambda cluster: list(paths).index(cluster.name))
    today = date.today()  # noqa: DTZ011  (the day where the user is)
    replace_by = rotate_by.date() if rotate_by is not None else today + ROTATE_AFTER
    identity = Identity(name, project, replace_by, today, default_kueue, not new, pulumi_import is not None)
    try:
        adoption, plan = _adopt(clusters, identity)
    except SpecError as refused:
        raise console.CommandError("these clusters cannot be one fleet file:", problems=refused.problems) from None
    _write(adoption, output)
    if pulumi_import is not None and plan is not None:
        write_text(pulumi_import, json.dumps(plan.file, indent=2) + "\n")
        _say_what_next(plan, pulumi_import, (adoption.data.get("network") or {}).get("controlPlaneAccess"))
    _report(adoption, output)


def _paths(values: list[str]) -> dict[str, str]:
    """The path of each cluster's objects; empty: they are read live."""
    names = [value for value in values if gke_cluster_name(value) is None]
    if name := next((name for name in names if is_there(Path(name))), None):
        fix = f"write {name}={name} to read that, or read the cluster from another folder"
        raise console.mistyped(f"{name}: is also a file or a folder here; {fix}")
    live = dict.fromkeys(names, "")
    return _named("CLUSTER=PATH", [f"{value}=-" if value in live else value for value in values]) | live


def _clusters(
    objects_of: Callable[[str], list[Mapping[str, Any]]],
    paths: Mapping[str, str],
    described: Mapping[str, Mapping[str, Any]],
    region: list[str],
    node_pools: list[str],
    mode: list[str],
) -> list[AdoptedCluster]:
    """What is known of each cluster, from its objects, its description and the options."""
    pools = _named("--node-pools", node_pools)
    _refuse_unknown("--node-pools", pools, paths)
    _refuse_twice("--node-pools", pools, described)
    without = [cluster for cluster in paths if cluster not in described]
    regions = _of_others("--region", region, without, described)
    regions |= {cluster: region_at(str(value["location"])) for cluster, value in described.items()}
    modes = _of_others("--mode", mode, [cluster for cluster in without if cluster not in pools], described)
    for cluster, choice in modes.items():
        if choice not in get_args(Mode):
            raise console.mistyped(
                f"--mode: {choice!r} for {cluster} is not a mode; write {' or '.join(get_args(Mode))}"
            )
    modes |= {cluster: mode_of(value) for cluster, value in described.items()}
    clusters = []
    for cluster in paths:
        pools_there = _pools_of(described.get(cluster), pools.get(cluster))
        region_there = regions.get(cluster) or region_of_pools(pools_there) or ""
        mode_there = cast("Mode | None", modes.get(cluster))
        objects = objects_of(cluster)
        clusters.append(AdoptedCluster(cluster, region_there, objects, pools_there, mode_there, described.get(cluster)))
    return clusters


def _write(adopted: Adopted, output: Path | None) -> None:
    if output is None:
        console.text(dump_yaml(adopted.data))
        return
    stack = _STACK_FILE.fullmatch(output.name)
    write_text(output, dump_yaml(_as_stack(adopted.data, output) if stack else adopted.data))
    console.line(f"{output}: written")
    if stack:
        project_around(output.parent, adopted.data["name"])


def _as_stack(fleet: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """The content of a stack file; what else is in the present one, such as the salt of its secrets, stays."""
    stack = load_yaml(read_text(file), str(file)) if is_there(file) else {}
    stack = dict(stack) if isinstance(stack, Mapping) else {}
    config = stack.get("config")
    return {**stack, "config": {**(config if isinstance(config, Mapping) else {}), PULUMI_KEY: dict(fleet)}}


def _adopt(clusters: list[AdoptedCluster], identity: Identity) -> tuple[Adopted, ImportPlan | None]:
    if not identity.managed:
        return adopt_fleet(clusters, identity), None
    from kueue_fleet.pulumi_import import take_over

    return take_over(clusters, identity)


def _say_what_next(plan: ImportPlan, file: Path, access: str | None) -> None:
    by_address = "; to let addresses in, write network.controlPlaneAccess: AuthorizedNetworks and "
    fix = f"{by_address}network.authorizedNetworks" if access is None else ""
    for adoption in plan.adoptions:
        for difference in adoption.access:
            console.warning(f"pulumi up changes who reaches the API server of {adoption.path}: {difference}{fix}")
        if adoption.nodes_made_private:
            lost = f"nodes of {adoption.path} lose their external addresses"
            console.warning(f"{lost}; what pods read from the internet needs Cloud NAT")
    console.line(f"{file}: written, {len(plan.adoptions)} resources to import")
    for adoption in plan.adoptions:
        for difference in adoption.differences:
            console.line(f"pulumi up changes {adoption.path}: {difference}")
    if plan.adoptions:
        console.line(f"next: pulumi import --file {file} --generate-code=false, then pulumi preview --diff")


def _report(adopted: Adopted, output: Path | None) -> None:
    for note in adopted.notes:
        console.warning(note)
    try:
        problems = check_fleet(parse_fleet(adopted.data))
    except SpecError as refused:
        problems = list(refused.problems)
    for problem in problems:
        (console.error if problem.severity == "error" else console.warning)(f"{output or 'fleet'}: {problem.coded}")
    if any(problem.severity == "error" for problem in problems):
        raise typer.Exit(1)


def _named(what: str, values: list[str]) -> dict[str, str]:
    cluster_names: dict[str, str] = {}
    for value in values:
        cluster, equals, rest = value.partition("=")
        if not equals or not cluster or not rest:
            raise console.mistyped(f"{what}: {value!r} names no cluster; write CLUSTER={value}")
        if cluster in cluster_names:
            raise console.mistyped(f"{what}: {cluster} is given twice; give each cluster once")
        cluster_names[cluster] = rest
    return cluster_names


def _refuse_unknown(what: str, given: Mapping[str, str], clusters: Mapping[str, str]) -> None:
    for cluster in given:
        if cluster not in clusters:
            raise console.mistyped(f"{what}: there is no cluster {cluster}; there are {', '.join(clusters)}")


def _of_clusters(what: str, values: list[str], clusters: list[str]) -> dict[str, str]:
    """The values of CLUSTER=VALUE by cluster; one that stands alone is that of all others."""
    default = [value for value in values if "=" not in value]
    if len(default) > 1:
        raise console.mistyped(f"{what}: {' and '.join(default)} are both for all clusters; write CLUSTER={default[1]}")
    own = _named(what, [value for value in values if "=" in value])
    _refuse_unknown(what, own, dict.fromkeys(clusters, ""))
    return {**{cluster: value for value in default for cluster in clusters}, **own}


def _read_manifests(path: Path) -> list[Mapping[str, Any]]:
    with well_formed(path):
        return [document.data for document in read_what_can_be(path)]


def _descriptions(files: Mapping[str, str], clusters: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    """What gcloud says of clusters, each in a file."""
    _refuse_unknown("--description", files, clusters)
    descriptions_by_name: dict[str, Mapping[str, Any]] = {}
    for cluster, file in files.items():
        documents = [document.data for document in _gcloud_documents(Path(file))]
        problems = description_problems(cluster, documents[0] if len(documents) == 1 else None)
        if problems:
            raise console.wrong_input(Path(file), problems)
        descriptions_by_name[cluster] = documents[0]
    return descriptions_by_name


def _refuse_undescribed(
    clusters: Mapping[str, str],
    described: Mapping[str, object],
    pulumi_import: Path | None,
    output: Path | None,
    *,
    new: bool,
) -> None:
    """What --pulumi-import needs."""
    if pulumi_import is None:
        return
    if new:
        raise console.mistyped("--new: clusters that are to be made are not imported; leave one out")
    if output is None:
        raise console.mistyped("--pulumi-import: needs the file of the fleet too; add --output FILE")
    missing_names = [cluster for cluster in clusters if cluster not in described]
    if missing_names:
        raise console.mistyped(
            f"--pulumi-import: no description of {', '.join(missing_names)}; add --description {missing_names[0]}=FILE"
        )


def _refuse_twice(what: str, given: Iterable[str], described: Mapping[str, object]) -> None:
    for cluster in given:
        if cluster in described:
            raise console.mistyped(f"{what}: the description of {cluster} has it; leave one out")


def _of_others(what: str, values: list[str], clusters: list[str], described: Mapping[str, object]) -> dict[str, str]:
    """The values by cluster, of clusters without a description."""
    cluster_names = [value.partition("=")[0] for value in values if "=" in value]
    _refuse_twice(what, cluster_names if clusters or not values else described, described)
    return _of_clusters(what, values, clusters)


def _pools_of(description: Mapping[str, Any] | None, file: str | None) -> list[Mapping[str, Any]]:
    """The node pools of a Standard cluster."""
    if description is not None:
        return list(description.get("nodePools") or ()) if mode_of(description) == "Standard" else []
    return _read_pools(Path(file)) if file is not None else []


def _gcloud_documents(file: Path) -> list[YamlDocument]:
    try:
        return load_documents(read_text(file, "what gcloud prints"), console.source_name(file))
    except SpecError as refused:
        raise console.wrong_input(file, refused.problems) from None


def _read_pools(file: Path) -> list[Mapping[str, Any]]:
    documents = _gcloud_documents(file)
    lists = [document.data if isinstance(document.data, list) else [document.data] for document in documents]
    pools = [pool for pools in lists for pool in pools]
    if not pools or not all(isinstance(pool, Mapping) for pool in pools):
        raise console.CommandError(
            f"{file}: holds no node pools; give what `gcloud container node-pools list --format yaml` prints"
        )
    return pools
