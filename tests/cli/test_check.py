"""`check` as a person, a program and GitHub read it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.cli.test_spec_commands import GOOD, STACK

from command_line import call
from kueue_admission.cli.code_scanning import annotation
from kueue_admission.kernel.form_rules import MISSING

ATTEMPTS = Path(__file__).parent / "first_attempts"
QUOTA = "clusterQueues[queue].resourceGroups[0].flavors[l4].resources[nvidia.com/gpu].nominalQuota"


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    file = tmp_path / "fleet.yaml"
    file.write_text(GOOD)
    return file


@pytest.fixture
def broken_file(tmp_path: Path) -> Path:
    file = tmp_path / "broken.yaml"
    file.write_text(GOOD.replace("nominalQuota: 4 ", "nominalQuota: -4 ").replace("region: us-", "regoin: us-"))
    return file


def test_a_good_fleet_is_valid(fleet_file: Path) -> None:
    result = call("check", fleet_file)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{fleet_file}: fleet tiny is valid: 1 cluster, 1 ClusterQueue, ")


def test_standard_input_is_called_so() -> None:
    assert call("check", "-", stdin=GOOD).stdout.startswith("<stdin>: fleet tiny is valid")
    assert call("check", "-", stdin="name: x\n  y: z").stderr.startswith(
        "error: <stdin>:2: the colon or the indentation"
    )


def test_every_problem_of_every_file_has_its_file_and_line(fleet_file: Path, broken_file: Path) -> None:
    result = call("check", fleet_file, broken_file, "missing.yaml")
    assert result.returncode == 1
    assert f"{fleet_file}: fleet tiny is valid" in result.stdout
    assert result.stderr.splitlines() == [
        f"error: {broken_file}:4: clusters[solo].regoin: is not a known field; did you mean region? [KF502]",
        f"error: {broken_file}:14: {QUOTA}: -4 is negative; write 0 or a positive amount [KF511]",
        "error: missing.yaml: no such file; give a Pulumi.<env>.yaml or a fleet YAML [KF904]",
    ]


def test_jobs_are_checked_against_the_fleet(tmp_path: Path) -> None:
    examples = Path(__file__).parents[2] / "examples/jobs"
    assert call("check", examples / "fleet.yaml", "--jobs", examples / "jobset.yaml").returncode == 0
    jobs = tmp_path / "jobs.yaml"
    text = (examples / "jobset.yaml").read_text()
    jobs.write_text(
        text.replace("queue-name: training", "queue-name: dws").replace(
            "16Gi", '16Gi, nvidia.com/gpu: "2" }, limits: { nvidia.com/gpu: "2"', 1
        )
    )
    result = call("check", examples / "fleet.yaml", "--jobs", jobs)
    assert result.returncode == 1
    assert f"error: {jobs}:5: JobSet research/train-distributed: GKE refuses a ProvisioningRequest" in result.stderr
    results = json.loads(call("check", examples / "fleet.yaml", "--jobs", jobs, "--output", "json").stdout)["files"][0]
    assert [(one["line"], one["path"]) for one in results["problems"] if one["severity"] == "error"] == [
        (5, "JobSet research/train-distributed")
    ]
    assert "no such file or folder" in call("check", examples / "fleet.yaml", "--jobs", "nothing.yaml").stderr


EXAMPLES = Path(__file__).parents[2] / "examples"
JOBS = [
    ("stacks/Pulumi.dws-multikueue.yaml", "dws-multikueue/gpu-intensive-job.yaml"),
    ("stacks/Pulumi.batch-platform.yaml", "batch-platform/mnist.yaml"),
    ("stacks/Pulumi.batch-platform.yaml", "batch-platform/finetune.yaml"),
    *((f"stacks/Pulumi.{name}.yaml", f"{name}/jobs.yaml") for name in ("dev", "staging", "prod")),
    *(("examples/kinds-of-jobs/fleet.yaml", f"kinds-of-jobs/{name}.yaml") for name in ("rayjob", "trainjob", "pods")),
]


@pytest.mark.parametrize(("fleet", "jobs"), JOBS)
def test_the_jobs_of_examples_are_valid(fleet: str, jobs: str) -> None:
    result = call("check", EXAMPLES.parent / fleet, "--jobs", EXAMPLES / jobs)
    assert result.returncode == 0, result.stderr
    assert "Autopilot refuses" not in result.stderr


def test_a_job_that_no_worker_can_hold_is_an_error() -> None:
    result = call(
        "check", EXAMPLES.parent / "stacks/Pulumi.dws-multikueue.yaml", "--jobs", EXAMPLES / "dws-multikueue/jobs.yaml"
    )
    assert result.returncode == 1
    [line] = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert "items[12]: Job team-language/too-big-1: never starts: worker-asia-southeast1: ExceedsMaxQuota; " in line


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("  name: train\n", "  name: Train_A\n"), ': Job.metadata.name: "Train_A" has characters or a form that'),
        (("  name: train\n", ""), ": Job.metadata.name: is missing or empty; give it a name"),
        (("\nmetadata:", "\nmetadat:"), ": Job has no metadata; give it a name there"),
        (("\nspec:", "\nspecs:"), ": Job research/train.spec: is missing or empty; write its fields below it"),
        (
            ("containers:", "contaners:"),
            "spec.template.spec.containers: is missing or empty; write a list of them",
        ),
        (("kueue.x-k8s.io/queue-name", "queue"), "/train.metadata.labels: has no kueue.x-k8s.io/queue-name; name a"),
        (
            ("  labels:\n    kueue", "  annotations:\n    kueue"),
            "has no kueue.x-k8s.io/queue-name; move it there from metadata.annotations",
        ),
    ],
)
def test_what_kubernetes_would_refuse_is_seen(tmp_path: Path, wrong: tuple[str, str], message: str) -> None:
    jobs = tmp_path / "job.yaml"
    jobs.write_text((EXAMPLES / "jobs/job.yaml").read_text().replace(*wrong))
    result = call("check", EXAMPLES / "jobs/fleet.yaml", "--jobs", jobs)
    assert result.returncode == 1
    [line] = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert message in line


@pytest.mark.parametrize("name", ["first", "second"])
def test_what_a_person_types_at_first(name: str, snapshot: SnapshotAssertion) -> None:
    result = call("check", ATTEMPTS / f"{name}.yaml")
    assert (result.returncode, result.stdout) == (1, "")
    lines = result.stderr.replace(f"{ATTEMPTS}/", "")
    assert lines == snapshot
    for line in lines.splitlines():
        assert re.fullmatch(rf"(error|warning): {name}\.yaml:\d+: [^ ]+: [^;]+; .+", line)


def test_as_json_it_is_one_document(fleet_file: Path, broken_file: Path) -> None:
    result = call("check", "--output", "json", fleet_file, broken_file, "-", stdin="name: x: y")
    assert (result.returncode, result.stderr) == (1, "")
    good, broken, typed = json.loads(result.stdout)["files"]
    assert good == {"file": str(fleet_file), "valid": True, "problems": []}
    assert (broken["file"], broken["valid"]) == (str(broken_file), False)
    assert broken["problems"][1] == {
        "severity": "error",
        "line": 14,
        "path": QUOTA,
        "wrong": "-4 is negative",
        "fix": "write 0 or a positive amount",
        "code": "KF511",
    }
    assert broken["problems"][0]["code"] == "KF502"
    assert (typed["file"], typed["problems"][0]["line"], typed["problems"][0]["path"]) == ("<stdin>", 1, "")


def test_for_github_each_problem_is_an_annotation_of_its_line(fleet_file: Path, broken_file: Path) -> None:
    result = call("check", "--output", "github", broken_file, fleet_file, "missing.yaml")
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout.splitlines() == [
        f"::error file={broken_file},line=4,title=clusters[solo].regoin::"
        "is not a known field; did you mean region? [KF502]",
        f"::error file={broken_file},line=14,title={QUOTA}::-4 is negative; write 0 or a positive amount [KF511]",
        f"{fleet_file}: fleet tiny is valid: 1 cluster, 1 ClusterQueue, 3 Kubernetes objects",
        "::error file=missing.yaml::no such file; give a Pulumi.<env>.yaml or a fleet YAML [KF904]",
    ]


def test_an_annotation_has_no_character_that_means_something_to_github() -> None:
    problem = MISSING.at("labels[a:b,c]", "50 %\r\n::set-output::", "fix", "warning", source="a,b:c%.yaml", line=3)
    assert annotation(problem) == (
        "::warning file=a%2Cb%3Ac%25.yaml,line=3,title=labels[a%3Ab%2Cc]::50 %25%0D%0A::set-output::; fix [KF504]"
    )


def test_for_code_scanners_it_is_one_log(fleet_file: Path, broken_file: Path) -> None:
    """As https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html has it; the rule is the code."""
    result = call("check", "--output", "sarif", broken_file, fleet_file, "missing file.yaml")
    assert (result.returncode, result.stderr) == (1, "")
    log = json.loads(result.stdout)
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["KF502", "KF511", "KF904"]
    assert rules[0]["shortDescription"]["text"] == "`is not a known field`"
    assert run["results"][0]["ruleId"] == "KF502"
    assert run["results"][1] == {
        "ruleId": "KF511",
        "level": "error",
        "message": {"text": f"{QUOTA}: -4 is negative; write 0 or a positive amount"},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": str(broken_file)}, "region": {"startLine": 14}}}
        ],
    }
    assert run["results"][2] == {
        "ruleId": "KF904",
        "level": "error",
        "message": {"text": "no such file; give a Pulumi.<env>.yaml or a fleet YAML"},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": "missing%20file.yaml"}}}],
    }


def test_warnings_fail_when_they_are_to() -> None:
    warned = GOOD.replace("name: tiny", "name: tiny\nkueue: {version: 0.19.3}")
    assert call("check", "-", stdin=warned).returncode == 0
    result = call("check", "--strict", "-", stdin=warned)
    assert result.returncode == 1
    assert result.stderr.startswith(
        "warning: <stdin>:3: kueue.version: 0.19.3, but the rules checked here are those of"
    )


def test_a_file_of_3000_nested_maps_is_refused_plainly() -> None:
    result = call("check", "-", stdin="\n".join(" " * level + "a:" for level in range(3000)))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "error: <stdin>:201: is nested too deeply; write plain fields and lists [KF518]\n"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda file: None, "no such file; give a Pulumi.<env>.yaml or a fleet YAML"),
        (lambda file: file.mkdir(), "is a folder; give a Pulumi.<env>.yaml or a fleet YAML"),
        (lambda file: file.write_bytes(b"name: \xff\xfe"), "is not UTF-8 text (byte 6); save it as UTF-8"),
    ],
    ids=["missing", "directory", "binary"],
)
def test_a_file_that_cannot_be_read_ends_in_one_sentence(tmp_path: Path, make: object, message: str) -> None:
    assert callable(make)
    file = tmp_path / "some.yaml"
    make(file)
    result = call("check", file)
    assert result.returncode == 1
    assert result.stderr == f"error: {file}: {message} [KF904]\n"


def test_a_mistyped_option_exits_2() -> None:
    assert call("check", "--stirct", STACK).returncode == 2
    assert call("check", "--output", "gitlab", STACK).returncode == 2


def test_a_wrong_section_of_the_rehearsal_is_not_called_valid(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    fleet = "".join(f"    {line}\n" for line in GOOD.splitlines())
    file.write_text(f"config:\n  kueue-fleet:rehearsal: {{dws: {{stok: 3}}}}\n  kueue-fleet:fleet:\n{fleet}")
    result = call("check", str(file))
    assert "kueue-fleet:rehearsal.dws.stok: is not a known field; did you mean stock?" in result.stderr
    assert (result.returncode, result.stdout) == (1, "")
    [results] = json.loads(call("check", "-o", "json", str(file)).stdout)["files"]
    assert results["valid"] is False
