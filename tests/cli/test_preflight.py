"""`kueue-fleet preflight`: a table, JSON and annotations, from Google's APIs on this machine."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import httplib2
import pytest
import yaml
from tests.cli.live_fleet import serve
from tests.preflight import google_api
from tests.preflight.google_api import Project
from tests.preflight.projects import fleet_data, roomy_project
from typer.testing import CliRunner, Result

from kueue_admission.cli.console import CommandError
from kueue_fleet.cli import app
from kueue_fleet.fleet_file import parse_fleet_text
from kueue_fleet.preflight import google_cloud
from kueue_fleet.preflight.needs import needs_of
from kueue_fleet.preflight.quotas import Metric
from plain_fleets import mixed_data

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    result = roomy_project()
    with result.served() as endpoints:
        google = google_cloud.Google(httplib2.Http(timeout=5), endpoints, sleep=lambda _: None)
        monkeypatch.setattr(google_cloud, "connect", lambda project: google)
        yield result
    assert result.wrong == []


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "fleet.yaml"
    path.write_text(yaml.safe_dump(fleet_data()))
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["preflight", *arguments])


def test_a_fleet_that_fits(project: Project, file: str) -> None:
    result = run(file)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["what", "needs", "has", "result", "what", "to", "do"]
    (l4,) = [line for line in lines if line.startswith("NVIDIA_L4_GPUS in us-central1")]
    assert re.fullmatch(r"NVIDIA_L4_GPUS in us-central1 +18 +20, 0 in use +fits", l4)
    assert lines[-1] == "the fleet fits into project my-project"


def test_all_that_does_not_fit_is_said_at_once(project: Project, file: str) -> None:
    project.regions["us-central1"]["NVIDIA_L4_GPUS"] = (10, 2)
    project.regions["us-central1"]["SSD_TOTAL_GB"] = (4_000, 3_900)
    project.permissions.remove("iam.serviceAccounts.actAs")
    project.failures["compute.machineTypes.aggregatedList"] = [google_api.forbidden("compute.machineTypes.list")]
    result = run(file)
    assert result.exit_code == 1
    assert (
        "the limit is 10, but the fleet grows to 18 (only/shared 8, only/l4 6 and reservation kept 4); ask for 18"
        in (result.stdout)
    )
    assert "ask for roles/iam.serviceAccountUser in my-project" in result.stdout
    assert "you may not call compute.machineTypes.aggregatedList: Required 'compute.machineTypes.list'" in result.stdout
    last = result.stdout.splitlines()[-1]
    assert re.fullmatch(r"the fleet does not fit into project my-project as it is: 2 to ask for, \d+ not known", last)


def test_json(project: Project, file: str) -> None:
    project.regions["us-central1"]["SSD_TOTAL_GB"] = (4_000, 3_900)
    result = run(file, "-o", "json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["schemaVersion"], document["project"], document["fits"]) == (
        0,
        1,
        "my-project",
        True,
    )
    (disks,) = [item for item in document["findings"] if item["result"] != "fits"]
    assert (disks["part"], disks["what"], disks["result"]) == ("quotas", "SSD_TOTAL_GB in us-central1", "check")
    assert disks["fix"].startswith("if what is in use is not this fleet's, ask for ")


def test_annotations(project: Project, file: str) -> None:
    project.regions["us-central1"]["SSD_TOTAL_GB"] = (4_000, 3_900)
    project.permissions.remove("iam.serviceAccounts.actAs")
    result = run(file, "-o", "github")
    assert result.exit_code == 1
    warning, error = result.stdout.splitlines()
    assert warning.startswith(f"::warning file={file},title=SSD_TOTAL_GB in us-central1::")
    assert error.startswith(
        f"::error file={file},title=roles/iam.serviceAccountUser::you lack iam.serviceAccounts.actAs"
    )


def test_without_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    result = run(file, "-o", "json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["fits"]) == (1, False)
    assert result.stderr.startswith("error: my-project: GOOGLE_APPLICATION_CREDENTIALS cannot be used: ")
    [finding] = document["findings"]
    assert (finding["project"], finding["part"], finding["result"]) == ("my-project", "project", "unknown")
    assert (finding["wrong"], finding["fix"]) == (
        f"GOOGLE_APPLICATION_CREDENTIALS cannot be used: File {tmp_path}/none.json was not found",
        "correct it, or unset it and run: gcloud auth application-default login",
    )


def test_the_page_needs_neither_google_nor_its_clients(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    monkeypatch.setitem(sys.modules, "kueue_fleet.preflight.google_cloud", None)
    result = run(file, "--page")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "# Prerequisites of lab")


def test_what_the_docs_show_of_the_production_stack(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """In a project with room for everything but some GPUs and disks."""
    stack = ROOT / "stacks" / "Pulumi.prod.yaml"
    needs, *_ = needs_of(parse_fleet_text(stack.read_text(encoding="utf-8"), stack.name))
    limits = {need.metric: float(need.amount) for need in needs.quotas}
    limits |= {Metric("GPUS_ALL_REGIONS"): 128, Metric("NVIDIA_L4_GPUS", "us-central1"): 32}
    limits |= {Metric("PREEMPTIBLE_NVIDIA_H100_GPUS", "europe-west4"): 8}
    project = Project(
        id=needs.project,
        apis=[api.name for api in needs.apis if api.name != "gkehub.googleapis.com"],
        quotas={metric.name: (limit, 0) for metric, limit in limits.items() if not metric.region},
        regions={
            region: {metric.name: (limit, 0) for metric, limit in limits.items() if metric.region == region}
            for region in needs.regions
        },
        permissions=[name for role in needs.roles for name in role.permissions if name != "iam.roles.create"],
    )
    for need in needs.machines:
        if (need.zone, need.machine_type) != ("us-central1-b", "a3-highgpu-8g"):
            project.machine_types.setdefault(need.zone, []).append(need.machine_type)
    project.machine_types["us-central1-a"].append("a3-highgpu-8g")
    with project.served() as endpoints:
        google = google_cloud.Google(httplib2.Http(timeout=5), endpoints)
        monkeypatch.setattr(google_cloud, "connect", lambda project: google)
        output = run(str(stack)).stdout.splitlines()
    assert project.wrong == []
    told = "\n".join(line.rstrip() for line in output if not re.search(r" fits( |$)", line) or line == output[-1])
    page = ROOT / "docs" / "tasks" / "create-a-fleet.md"
    text = page.read_text(encoding="utf-8")
    block = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    assert block is not None
    if request.config.getoption("update_snapshots"):
        page.write_text(text.replace(block[0], f"```text\n{told}\n```", 1), encoding="utf-8")
    else:
        assert block[1] == f"{told}\n", "run: make golden"


ALONE = {"name": "lab", "clusters": [{"name": "paris", "role": "standalone", "kubernetes": {}}]}


def preflight_of_paris(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **tables: object) -> Result:
    """Of a cluster outside GKE that answers so."""
    file = tmp_path / "fleet.yaml"
    file.write_text(yaml.safe_dump(ALONE))
    monkeypatch.setitem(sys.modules, "googleapiclient", None)
    with serve(["paris"], monkeypatch, tmp_path / "kubeconfig") as result:
        result.tables["paris"] |= {"/version": {"gitVersion": "v1.30.1"}, **tables}
        return run(str(file), "--kubeconfig", str(tmp_path / "kubeconfig"))


def test_a_cluster_outside_gke_is_asked_and_google_is_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    result = preflight_of_paris(monkeypatch, tmp_path, **{reviews: []})
    assert result.exit_code == 1, result.output
    assert re.search("paris: API server +reachable +v1.30.1 +fits", result.stdout)
    assert "may not write namespaces, secrets, " in result.stdout
    assert result.stdout.endswith("does not fit into its clusters outside GKE as it is: 1 to ask for\n")


def test_a_cluster_outside_gke_that_refuses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not a word of its reviews; of the rest it answers."""
    result = preflight_of_paris(monkeypatch, tmp_path)
    assert result.exit_code == 1, result.output
    assert re.search("paris: API server +reachable +v1.30.1 +fits", result.stdout)
    assert re.search("paris: rights .*unknown +the API server says: ", result.stdout)
    assert result.stdout.endswith("it is not known whether the fleet fits into its clusters outside GKE: 1 not known\n")


@pytest.mark.parametrize("missing", ["credentials", "client"])
def test_clusters_outside_gke_are_asked_where_google_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str
) -> None:
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(mixed_data()))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    if missing == "client":
        monkeypatch.delitem(sys.modules, "kueue_fleet.preflight.google_cloud")
        monkeypatch.setitem(sys.modules, "google_auth_httplib2", None)
    with serve(["admin@paris"], monkeypatch, tmp_path / "kubeconfig") as result:
        result.tables["admin@paris"] |= {"/version": {"gitVersion": "v1.30.1"}}
        completed = run(str(tmp_path / "fleet.yaml"), "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert completed.exit_code == 1, completed.output
    fix = {"credentials": "gcloud auth application-default login", "client": r"pip install 'kueue-fleet\[preflight\]'"}
    assert re.search(rf"mixed-project +Google Cloud .*unknown .*run: {fix[missing]}", completed.stdout)
    assert re.search("paris: API server +reachable +v1.30.1 +fits", completed.stdout)
    assert "it is not known whether the fleet fits into project mixed-project: 1 not known\n" in completed.stdout


@pytest.mark.parametrize("content", [None, "- a\n"])
def test_google_is_asked_where_there_is_no_kubeconfig(project: Project, tmp_path: Path, content: str | None) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    if content is not None:
        kubeconfig.write_text(content)
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(mixed_data(project="my-project")))
    result = run(str(tmp_path / "fleet.yaml"), "--kubeconfig", str(kubeconfig))
    assert result.exit_code == 1, result.output
    assert re.search(r"my-project +roles/iam.serviceAccountUser ", result.stdout)
    assert re.search(f"paris: API server .*unknown +{kubeconfig}: ", result.stdout)


def test_a_kubeconfig_from_stdin_is_mistyped(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(ALONE))
    refused = run(str(tmp_path / "fleet.yaml"), "--kubeconfig", "-").exception
    assert isinstance(refused, CommandError)
    assert refused.exit_code == 2


def test_a_context_that_is_missing(tmp_path: Path) -> None:
    for name, data in (("fleet.yaml", ALONE), ("kubeconfig", {"contexts": []})):
        (tmp_path / name).write_text(yaml.safe_dump(data))
    result = run(str(tmp_path / "fleet.yaml"), "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert result.exit_code == 1, result.output
    assert "has no context paris" in result.stdout
