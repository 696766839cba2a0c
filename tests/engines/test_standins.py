"""The stand-ins under the real `pulumi`, against a real API server and the real supervisor."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from forked_python import forked_python
from kueue_fleet.rehearsal.engines import EngineCache, Engines, build_engines
from kueue_fleet.rehearsal.paths import RehearsalPaths, engines_dir
from kueue_fleet.rehearsal.processes.ends import still_running
from kueue_fleet.rehearsal.processes.supervisor_client import RunningSupervisor, start_supervisor
from kueue_fleet.rehearsal.pulumi_cli import make_pulumi_home
from kueue_fleet.rehearsal.standins.executables import PARTS, install_standins
from kueue_fleet_offline.kube_api import ApiError, KubeApi, Manifest, NoMatchError
from kueue_fleet_offline.kubeconfig import cluster_access
from one_cluster import PATIENCE_SECONDS, wait_until

COMMAND_SECONDS = 120
CLUSTER = "east"
PRELUDE = """
import json, os, pulumi
import pulumi_kubernetes as k8s
from pulumi import ResourceOptions as Options
KUBECONFIG = os.environ["TRIAL_KUBECONFIG"]
def cluster(name="east", **settings):
    return k8s.Provider(name, kubeconfig=KUBECONFIG, cluster_identifier="p/l/" + name, **settings)
"""
WIDGET_CRD = """
crd = k8s.apiextensions.v1.CustomResourceDefinition("crd", metadata={"name": "PLURAL.trial.dev"}, spec={
    "group": "trial.dev", "scope": "Cluster",
    "names": {"plural": "PLURAL", "kind": "KIND"},
    "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}, "text": {"type": "string"}}},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}],
}, opts=Options(provider=p))
"""


@dataclass
class Trial:
    """A cluster, and everything that `pulumi` needs to work on it."""

    paths: RehearsalPaths
    engines: Engines
    supervisor: RunningSupervisor
    kubeconfig: dict[str, Any]
    api: KubeApi


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    engines = build_engines(EngineCache(engines_dir()), names=("etcd", "kubernetes", "helm", "pulumi"))
    root = Path(tempfile.mkdtemp(prefix="standins-"))
    paths = RehearsalPaths(root)
    try:
        with start_supervisor(paths, services="none") as supervisor:
            install_standins(paths.bin, forked_python(), present={})
            description = supervisor.client.put_cluster(CLUSTER, project="p", location="europe-west4", autopilot=True)
            yield _trial(paths, engines, supervisor, description)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _trial(
    paths: RehearsalPaths, engines: Engines, supervisor: RunningSupervisor, description: Mapping[str, Any]
) -> Trial:
    cluster = {
        "server": f"https://{description['endpoint']}",
        "certificate-authority-data": description["caCertificate"],
    }
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "gke-gcloud-auth-plugin",
        "interactiveMode": "IfAvailable",
        "provideClusterInfo": True,
    }
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CLUSTER,
        "clusters": [{"name": CLUSTER, "cluster": cluster}],
        "users": [{"name": CLUSTER, "user": {"exec": plugin}}],
        "contexts": [{"name": CLUSTER, "context": {"cluster": CLUSTER, "user": CLUSTER}}],
    }
    token = paths.admin_token.read_text(encoding="utf-8").strip()
    direct = {**kubeconfig, "users": [{"name": CLUSTER, "user": {"token": token}}]}
    api = KubeApi(cluster_access(direct, None, None))
    return Trial(paths, engines, supervisor, kubeconfig, api)


@dataclass
class Stack:
    """One Pulumi project with one stack, whose program a test writes."""

    folder: Path
    environment: dict[str, str]

    def write(self, program: str) -> None:
        # Python takes old byte code for that of a program as long that was written in the same second.
        shutil.rmtree(self.folder / "__pycache__", ignore_errors=True)
        Path(self.folder, "__main__.py").write_text(PRELUDE + program, encoding="utf-8")

    def pulumi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["pulumi", *arguments, "--non-interactive"]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=COMMAND_SECONDS
        )

    def run(self, *arguments: str) -> dict[str, int]:
        """The summary of a command that must succeed: resources by what happened to them."""
        done = self.pulumi(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return _summary(done.stdout)

    def up(self, program: str) -> dict[str, int]:
        self.write(program)
        return self.run("up", "--yes", "--skip-preview")

    def refused(self, program: str, *arguments: str) -> str:
        """What `pulumi up` says when it fails, as it must."""
        self.write(program)
        done = self.pulumi(*(arguments or ("up", "--yes", "--skip-preview")))
        assert done.returncode != 0, done.stdout
        return done.stdout + done.stderr

    @property
    def state_text(self) -> str:
        return Path(self.environment["TRIAL_STATE"], ".pulumi/stacks/trial/dev.json").read_text(encoding="utf-8")

    def outputs(self, resource_name: str) -> dict[str, Any]:
        """A resource's outputs, with secrets in clear."""
        done = self.pulumi("stack", "export", "--show-secrets")
        resources = json.loads(done.stdout)["deployment"]["resources"]
        return next(dict(item["outputs"]) for item in resources if item["urn"].endswith(f"::{resource_name}"))


def _summary(text: str) -> dict[str, int]:
    block = text.rpartition("Resources:")[2]
    found = re.findall(r"^\s*(?:[-+~]+\s*)?(\d+) (\w+)", block.partition("Duration")[0], re.MULTILINE)
    return {word: int(number) for number, word in found}


@pytest.fixture(scope="module")
def untouched(trial: Trial, tmp_path_factory: pytest.TempPathFactory) -> Stack:
    """A project with a stack in which nothing has been done: `pulumi stack init` takes half a second of CPU."""
    return _stack(trial, tmp_path_factory.mktemp("untouched"), new=True)


@pytest.fixture
def stack(trial: Trial, untouched: Stack, tmp_path: Path) -> Stack:
    shutil.copytree(untouched.folder.parent, tmp_path, dirs_exist_ok=True, symlinks=True)
    return _stack(trial, tmp_path, new=False)


def _stack(trial: Trial, root: Path, *, new: bool) -> Stack:
    state, home, temporary, folder = root / "state", root / "home", root / "tmp", root / "project"
    for each in (state, temporary, folder):
        each.mkdir(exist_ok=not new)
    path = os.pathsep.join([str(trial.paths.bin), str(trial.engines.binary("pulumi").parent), os.environ["PATH"]])
    environment = {
        "PATH": path,
        "HOME": str(root),
        "TMPDIR": str(temporary),
        "PULUMI_HOME": str(make_pulumi_home(home)),
        "PULUMI_CONFIG_PASSPHRASE": "trial",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_STACK": "dev",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "KUEUE_FLEET_SUPERVISOR": str(trial.paths.socket),
        "KUEUE_FLEET_REHEARSAL": str(trial.paths.root),
        "KUEUE_FLEET_HELM": str(trial.engines.binary("helm")),
        "TRIAL_KUBECONFIG": json.dumps(trial.kubeconfig),
        "TRIAL_STATE": str(state),
    }
    backend = f'backend: {{url: "file://{state}"}}\n'
    Path(folder, "Pulumi.yaml").write_text(f"name: trial\nruntime: python\n{backend}", encoding="utf-8")
    made = Stack(folder, environment)
    made.write("")
    if new:
        initialised = made.pulumi("stack", "init", "dev")
        assert initialised.returncode == 0, initialised.stderr
    return made


def _live(trial: Trial, kind: str, name: str, namespace: str = "", api_version: str = "v1") -> Manifest:
    return trial.api.get({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}})


def _is_gone(trial: Trial, kind: str, name: str, namespace: str = "") -> bool:
    try:
        _live(trial, kind, name, namespace)
    except ApiError as error:
        return error.is_not_found
    return False


OBJECTS = """
p = cluster()
ns = k8s.core.v1.Namespace("ns", metadata={"name": "objects"}, opts=Options(provider=p))
here = {"namespace": ns.metadata.name}
settings = k8s.core.v1.ConfigMap("settings", metadata=here, data={"a": "DATA"}, opts=Options(provider=p))
account = k8s.core.v1.ServiceAccount("account", metadata={"name": "account", **here}, opts=Options(provider=p))
token = k8s.core.v1.Secret("token", type="kubernetes.io/service-account-token", metadata={
    "name": "token", **here, "annotations": {"kubernetes.io/service-account.name": account.metadata.name},
}, opts=Options(provider=p))
password = k8s.core.v1.Secret("password", metadata={"name": "password", **here},
    string_data={"word": pulumi.Output.secret("open-sesame-42")}, opts=Options(provider=p))
role = k8s.rbac.v1.ClusterRole("role", metadata={"name": "objects"}, rules=[
    {"apiGroups": [""], "resources": ["pods"], "verbs": VERBS}], opts=Options(provider=p))
limits = k8s.core.v1.ResourceQuota("limits", metadata={"name": "limits", **here},
    spec={"hard": {"cpu": "1000m", "memory": "1024Mi"}}, opts=Options(provider=p))
pulumi.export("token", token.data["token"])
"""


def _objects(data: str = "1", verbs: str = '["get", "list"]') -> str:
    return OBJECTS.replace("DATA", data).replace("VERBS", verbs)


def test_objects_are_created_changed_replaced_and_removed(trial: Trial, stack: Stack) -> None:
    assert stack.up(_objects()) == {"created": 9}
    assert stack.up(_objects()) == {"unchanged": 9}, "quantities and encoded secrets must not count as changes"

    token = _live(trial, "Secret", "token", "objects")["data"]["token"]
    for secret in ("open-sesame-42", base64.b64encode(b"open-sesame-42").decode(), token):
        assert secret not in stack.state_text

    assert stack.up(_objects(verbs='["get"]')) == {"updated": 1, "unchanged": 8}
    role = _live(trial, "ClusterRole", "objects", api_version="rbac.authorization.k8s.io/v1")
    assert role["rules"][0]["verbs"] == ["get"]
    managers = {(entry["manager"], entry["operation"]) for entry in role["metadata"]["managedFields"]}
    (manager,) = managers
    assert manager[0].startswith("pulumi-kubernetes-")
    assert manager[1] == "Apply", "the manager that created the object must not keep its fields"

    before = stack.outputs("settings")["metadata"]["name"]
    assert stack.up(_objects(data="2", verbs='["get"]')) == {"replaced": 1, "unchanged": 8}
    after = stack.outputs("settings")["metadata"]["name"]
    assert before != after
    assert before.startswith("settings-")
    assert _is_gone(trial, "ConfigMap", before, "objects")

    trial.api.delete(_live(trial, "ConfigMap", after, "objects"), propagation="Background")
    assert stack.run("refresh", "--yes", "--skip-preview")["deleted"] == 1
    assert stack.up(_objects(data="2", verbs='["get"]')) == {"created": 1, "unchanged": 8}

    assert stack.run("destroy", "--yes", "--skip-preview") == {"deleted": 9}
    assert _is_gone(trial, "Namespace", "objects")


def _widgets(plural: str, kind: str, rest: str) -> str:
    return "p = cluster()\n" + WIDGET_CRD.replace("PLURAL", plural).replace("KIND", kind) + rest


def _set_status(trial: Trial, kind: str, conditions: list[dict[str, Any]]) -> None:
    def created() -> Manifest | None:
        try:
            return _live(trial, kind, "w", api_version="trial.dev/v1")
        except (ApiError, NoMatchError):
            return None

    status = {"op": "add", "path": "/status", "value": {"conditions": conditions}}
    trial.api.patch_json(wait_until(created), [status])


def test_a_custom_resource_waits_for_its_kind_and_its_condition(trial: Trial, stack: Stack) -> None:
    rest = """
w = k8s.apiextensions.CustomResource("w", api_version="trial.dev/v1", kind="Gadget", spec={"size": 3.0}, metadata={
    "name": "w", "annotations": {"pulumi.com/waitFor": "condition=Active"}}, opts=Options(provider=p))
"""
    setter = threading.Thread(target=_set_status, args=(trial, "Gadget", [{"type": "Active", "status": "True"}]))
    setter.start()
    # The definition and its object start together: the object is tried again until its kind is there.
    assert stack.up(_widgets("gadgets", "Gadget", rest)) == {"created": 4}
    setter.join()
    assert _live(trial, "Gadget", "w", api_version="trial.dev/v1")["spec"] == {"size": 3}
    outputs = stack.outputs("w")
    assert outputs["status"]["conditions"][0]["type"] == "Active"
    assert "namespace" not in outputs["metadata"]
    assert stack.up(_widgets("gadgets", "Gadget", rest)) == {"unchanged": 4}


def test_an_object_that_does_not_become_ready_is_kept_and_tried_again(trial: Trial, stack: Stack) -> None:
    rest = """
w = k8s.apiextensions.CustomResource("w", api_version="trial.dev/v1", kind="Gizmo", spec={"size": 1}, metadata={
    "name": "w", "annotations": {"pulumi.com/waitFor": '["condition=Active", "jsonpath={.spec.size}=1"]'}},
    opts=Options(provider=p, depends_on=[crd], custom_timeouts=pulumi.CustomTimeouts(create="2s", update="2s")))
"""
    text = stack.refused(_widgets("gizmos", "Gizmo", rest))
    assert "was successfully created, but the Kubernetes API server reported that it failed" in text
    assert 'Waiting for condition "Active=True"' in text
    _set_status(trial, "Gizmo", [{"type": "Active", "status": "True"}])
    assert stack.up(_widgets("gizmos", "Gizmo", rest)) == {"updated": 1, "unchanged": 3}


def test_fields_that_a_kind_does_not_have_are_refused_in_the_preview(trial: Trial, stack: Stack) -> None:
    stack.up(_widgets("doodads", "Doodad", ""))
    rest = """
w = k8s.apiextensions.CustomResource("w", api_version="trial.dev/v1", kind="Doodad", spec={"sizze": 1},
    metadata={"name": "w"}, opts=Options(provider=p))
"""
    text = stack.refused(_widgets("doodads", "Doodad", rest), "preview")
    assert 'unknown field "spec.sizze"' in text


def test_a_field_that_another_manager_holds_is_a_conflict_until_it_is_forced(trial: Trial, stack: Stack) -> None:
    program = """
p = cluster()
role = k8s.rbac.v1.ClusterRole("role", metadata={"name": "contested", "labels": {"tier": "TIER"}, "annotations": NOTES},
    rules=[], opts=Options(provider=p))
"""
    stack.up(program.replace("TIER", "one").replace("NOTES", "{}"))
    theirs = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "contested", "labels": {"tier": "theirs"}},
    }
    trial.api.apply(theirs, field_manager="someone-else", force=True, dry_run=False)
    text = stack.refused(program.replace("TIER", "two").replace("NOTES", "{}"))
    assert "Server-Side Apply field conflict detected" in text
    assert 'conflict with "someone-else"' in text
    assert "pulumi.com/patchForce" in text
    forced = program.replace("TIER", "two").replace("NOTES", '{"pulumi.com/patchForce": "true"}')
    assert stack.up(forced) == {"updated": 1, "unchanged": 2}
    live = _live(trial, "ClusterRole", "contested", api_version="rbac.authorization.k8s.io/v1")
    assert live["metadata"]["labels"] == {"tier": "two"}


def test_an_object_that_is_there_already_is_not_taken_over_unless_asked(trial: Trial, stack: Stack) -> None:
    there = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "theirs"}}
    trial.api.create(there, field_manager="someone-else", dry_run=False)
    program = """
p = cluster(SETTINGS)
ns = k8s.core.v1.Namespace("ns", metadata={"name": "theirs", "labels": {"mine": "yes"}}, opts=Options(provider=p))
"""
    assert 'namespaces "theirs" already exists' in stack.refused(program.replace("SETTINGS", ""))
    stack.up(program.replace("SETTINGS", "upsert_existing_objects=True"))
    assert _live(trial, "Namespace", "theirs")["metadata"]["labels"]["mine"] == "yes"


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    folder = tmp_path / "chart"
    Path(folder, "templates").mkdir(parents=True)
    Path(folder, "Chart.yaml").write_text(
        'apiVersion: v2\nname: trial\nversion: 1.2.3\nappVersion: "9.9"\n', encoding="utf-8"
    )
    Path(folder, "values.yaml").write_text('colour: red\npassword: ""\n', encoding="utf-8")
    Path(folder, "templates", "all.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: trial, namespace: {{ .Release.Namespace }}}\n"
        "data: {colour: {{ .Values.colour | quote }}}\n---\n"
        "apiVersion: v1\nkind: Secret\nmetadata: {name: trial, namespace: {{ .Release.Namespace }}}\n"
        "stringData: {password: {{ .Values.password | quote }}}\n---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: trial-chart}\nrules: []\n",
        encoding="utf-8",
    )
    return folder


RELEASE = """
p = cluster()
release = k8s.helm.v3.Release("release", name="trial", chart="CHART", namespace="helmed", create_namespace=True,
    timeout=30, max_history=3, values={"colour": "COLOUR", "password": pulumi.Output.secret("pass-in-values-7")},
    opts=Options(provider=p))
"""


def test_a_helm_release_is_installed_upgraded_and_removed(trial: Trial, stack: Stack, chart: Path) -> None:
    arguments_file = chart.with_name("arguments")
    wrapper = chart.with_name("helm")
    helm = stack.environment["KUEUE_FLEET_HELM"]
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {arguments_file}\nexec {helm} "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    stack.environment["KUEUE_FLEET_HELM"] = str(wrapper)
    program = RELEASE.replace("CHART", str(chart))

    assert stack.up(program.replace("COLOUR", "green")) == {"created": 3}
    outputs = stack.outputs("release")
    assert outputs["status"] == {
        "name": "trial",
        "namespace": "helmed",
        "revision": 1,
        "status": "deployed",
        "chart": "trial",
        "version": "1.2.3",
        "appVersion": "9.9",
    }
    assert outputs["resourceNames"] == {
        "ClusterRole.rbac.authorization.k8s.io/rbac.authorization.k8s.io/v1": ["trial-chart"],
        "ConfigMap/v1": ["helmed/trial"],
        "Secret/v1": ["helmed/trial"],
    }
    assert stack.up(program.replace("COLOUR", "green")) == {"unchanged": 3}
    assert stack.up(program.replace("COLOUR", "blue")) == {"updated": 1, "unchanged": 2}
    assert _live(trial, "ConfigMap", "trial", "helmed")["data"] == {"colour": "blue"}
    assert stack.run("refresh", "--yes", "--skip-preview") == {"unchanged": 3}
    assert "pass-in-values-7" not in stack.state_text
    assert "pass-in-values-7" not in arguments_file.read_text(encoding="utf-8")
    assert not list(Path(stack.environment["TMPDIR"]).glob("kueue-fleet-helm-*")), "credentials must not stay behind"

    assert stack.run("destroy", "--yes", "--skip-preview") == {"deleted": 3}
    assert _is_gone(trial, "ConfigMap", "trial", "helmed")


def test_a_release_whose_chart_is_not_there_is_refused_before_anything_runs(stack: Stack) -> None:
    text = stack.refused(RELEASE.replace("CHART", "./no-such-chart"), "preview")
    assert "no-such-chart" in text
    assert "check the chart name and repository configuration" in text


FLEET_OF_ONE = """
import pulumi_gcp as gcp
network = gcp.compute.Network("network", name="net", project="trial-project", auto_create_subnetworks=False)
account = gcp.serviceaccount.Account("nodes", account_id="gke-nodes", project="trial-project")
role = gcp.projects.IAMMember("role", project="trial-project", role="roles/x", member=account.member)
gke = gcp.container.Cluster("gke", name="west", project="trial-project", location="us-west1", enable_autopilot=True,
    network=network.self_link, ip_allocation_policy={}, resource_labels={"step": "STEP"},
    deletion_protection=PROTECTED, opts=Options(depends_on=[role]))
def kubeconfig(endpoint, ca):
    config = json.loads(KUBECONFIG)
    config["clusters"][0]["cluster"] = {"server": "https://" + endpoint, "certificate-authority-data": ca}
    return json.dumps(config)
text = pulumi.Output.all(gke.endpoint, gke.master_auth.cluster_ca_certificate).apply(lambda a: kubeconfig(*a))
inside = k8s.Provider("west", kubeconfig=text, cluster_identifier="trial-project/us-west1/west")
ns = k8s.core.v1.Namespace("ns", metadata={"name": "inside"}, opts=Options(provider=inside))
pulumi.export("email", account.email)
"""


def test_a_gke_cluster_is_a_control_plane_of_the_rehearsal(trial: Trial, stack: Stack) -> None:
    def program(step: str, protected: bool) -> str:
        return FLEET_OF_ONE.replace("STEP", step).replace("PROTECTED", str(protected))

    stack.write(program("one", True))
    assert stack.run("preview") == {"to": 7}
    assert stack.up(program("one", True)) == {"created": 7}
    assert stack.up(program("one", True)) == {"unchanged": 7}
    assert stack.outputs("ns")["metadata"]["name"] == "inside"
    assert stack.outputs("nodes")["email"] == "gke-nodes@trial-project.iam.gserviceaccount.com"
    west = trial.supervisor.client.get_cluster("west")
    assert (west["project"], west["location"], west["autopilot"]) == ("trial-project", "us-west1", True)
    assert stack.up(program("two", True)) == {"updated": 1, "unchanged": 6}

    text = stack.pulumi("destroy", "--yes", "--skip-preview").stdout
    assert "Cannot destroy cluster because deletion_protection is set to true" in text
    assert stack.up(program("two", False))["updated"] == 1
    stack.run("destroy", "--yes", "--skip-preview")
    assert "west" not in [cluster["name"] for cluster in trial.supervisor.client.clusters()]


def test_google_cloud_properties_that_the_sdk_does_not_have_are_refused(stack: Stack) -> None:
    program = """
pulumi.CustomResource("gcp:container/cluster:Cluster", "x", {"name": "x", "project": "p", "location": "us-west1",
    "releaseChannel": {"chanel": "REGULAR"}}, Options(version="10.2.0"))
"""
    text = stack.refused(program, "preview")
    assert "releaseChannel.chanel: pulumi-gcp has no such property; did you mean channel?" in text


def test_a_program_that_fails_says_so_once(stack: Stack) -> None:
    text = stack.refused("def inner():\n    raise ValueError('no such fleet')\ninner()\n")
    assert text.count("ValueError: no such fleet") == 1
    assert "Program failed with an unhandled exception" in text
    assert "program_runner.py" not in text
    text = stack.refused("raise pulumi.RunError('clusters: none; add one')\n")
    assert "clusters: none; add one" in text
    assert "Traceback" not in text


def test_a_program_gets_its_config_with_secrets_marked(stack: Stack) -> None:
    stack.run("config", "set", "plain", "7")
    stack.run("config", "set", "--secret", "hidden", "behind-the-curtain")
    stack.up("""
config = pulumi.Config()
pulumi.export("where", [pulumi.get_project(), pulumi.get_stack(), pulumi.get_organization()])
pulumi.export("plain", config.require_int("plain"))
pulumi.export("hidden", config.require_secret("hidden"))
""")
    outputs = json.loads(stack.pulumi("stack", "output", "--json").stdout)
    assert outputs == {"where": ["trial", "dev", "organization"], "plain": 7, "hidden": "[secret]"}
    assert "behind-the-curtain" not in stack.state_text


def test_a_policy_pack_is_run(stack: Stack, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    Path(pack, "PulumiPolicy.yaml").write_text("runtime: python\n", encoding="utf-8")
    Path(pack, "__main__.py").write_text(
        "from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy\n"
        "def rule(args, report):\n"
        "    if args.resource_type == 'kubernetes:core/v1:Namespace':\n"
        "        report('no namespaces here')\n"
        "PolicyPack('pack', enforcement_level=EnforcementLevel.MANDATORY, policies=[\n"
        "    ResourceValidationPolicy(name='none', description='none', validate=rule)])\n",
        encoding="utf-8",
    )
    program = 'p = cluster()\nk8s.core.v1.Namespace("ns", metadata={"name": "judged"}, opts=Options(provider=p))\n'
    assert "no namespaces here" in stack.refused(program, "preview", "--policy-pack", str(pack))


def test_nothing_is_left_of_a_killed_pulumi(trial: Trial, stack: Stack, tmp_path: Path) -> None:
    install_standins(tmp_path / "bin", Path(sys.executable), present={})
    stack.environment["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{stack.environment['PATH']}"
    rest = """
w = k8s.apiextensions.CustomResource("w", api_version="trial.dev/v1", kind="Stuck", spec={"size": 1}, metadata={
    "name": "w", "annotations": {"pulumi.com/waitFor": "condition=Never"}}, opts=Options(provider=p, depends_on=[crd]))
"""
    stack.write(_widgets("stucks", "Stuck", rest))
    process = subprocess.Popen(
        ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive"],
        cwd=stack.folder,
        env=stack.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _set_status(trial, "Stuck", [])
    children = psutil.Process(process.pid).children(recursive=True)
    commands = " ".join(" ".join(child.cmdline()) for child in children)
    assert "kubernetes_provider" in commands
    assert "program_runner.py" in commands
    process.kill()
    process.wait()
    assert still_running(children, PATIENCE_SECONDS) == []
    stack.pulumi("cancel", "--yes")


def test_an_unreachable_cluster_is_named_and_can_be_given_up(stack: Stack) -> None:
    program = """
config = json.loads(KUBECONFIG)
config["clusters"][0]["cluster"]["server"] = "SERVER"
p = k8s.Provider("p", kubeconfig=json.dumps(config), cluster_identifier="x")
ns = k8s.core.v1.Namespace("ns", metadata={"name": "lost"}, opts=Options(provider=p))
"""
    server = json.loads(stack.environment["TRIAL_KUBECONFIG"])["clusters"][0]["cluster"]["server"]
    text = stack.refused(program.replace("SERVER", "https://127.0.0.1:9"))
    assert "configured Kubernetes cluster is unreachable" in text
    text = stack.refused(program.replace("SERVER", "https://10.1.2.3"))
    assert "acts on loopback servers only" in text
    stack.up(program.replace("SERVER", server))
    stack.write("")
    stack.environment["PULUMI_K8S_DELETE_UNREACHABLE"] = "true"
    # The provider in the state still points at the live cluster, so this is an ordinary deletion.
    assert stack.run("destroy", "--yes", "--skip-preview")["deleted"] == 3


def test_plugins_say_that_they_are_stand_ins(trial: Trial, stack: Stack) -> None:
    for part in PARTS:
        assert "stand-in" in Path(trial.paths.bin, part.executable).read_text(encoding="utf-8")
    about = stack.pulumi("about").stdout
    assert "+standin" in about
