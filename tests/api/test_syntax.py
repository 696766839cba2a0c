"""The syntax of names."""

from __future__ import annotations

import pytest

from kueue_admission.kernel import syntax
from kueue_fleet.fleet_file.model import addresses
from kueue_fleet.gke import google_syntax

GOOD = {
    syntax.dns_label: ["a", "0", "a-b", "a" * 63],
    google_syntax.gce_name: ["a", "a0", "a" * 63],
    syntax.dns_subdomain: ["a", "a.b", "0.a-b", ("a" * 63 + ".") * 3 + "b" * 61],
    syntax.label_key: ["a", "A_b.c-D", "example.com/Name", "a" * 63, "nvidia.com/gpu", "cpu"],
    syntax.label_value: ["", "a", "A_b.c-D", "a" * 63],
    google_syntax.region: ["europe-west4", "us-east4", "northamerica-northeast1", "asia-southeast1", "me-central2"],
    google_syntax.zone: ["europe-west4-a", "us-central1-ai1a"],
    google_syntax.gke_cluster_name: ["a", "worker-1", "a" * 40],
    google_syntax.project_id: ["my-project", "abcdef", "a" * 30, "example.com:my-project"],
    google_syntax.gcp_label_key: ["a", "team_1-x", "a" * 63],
    google_syntax.gcp_label_value: ["", "A".lower(), "1-_", "a" * 63],
    addresses.chart: ["oci://registry.k8s.io/kueue/charts/kueue", "kuberay/kuberay-operator", "./charts/kueue", "a"],
    google_syntax.member: ["user:a@example.com", "serviceAccount:" + "a" * 242 + "@example.com"],
    syntax.version: ["0.19.2", "1.0.0-rc.1", "10.20.30+build"],
    syntax.kind: ["Foo", "foo-bar", "F"],
    syntax.admission_check_name: ["a", "A b", "c" * 316],
}
BAD = {
    syntax.dns_label: {
        "": "is empty; write a name",
        "a" * 64: "is 64 characters long; use at most 63",
        "A": "has characters",
        "a.b": "has characters",
        "-a": "has characters",
        "a-": "has characters",
        "a\n": "has characters",
    },
    google_syntax.gce_name: {"0a": "has characters", "": "is empty"},
    syntax.dns_subdomain: {"a..b": "has characters", "a_b": "has characters", "a" * 254: "is 254 characters long"},
    syntax.label_key: {
        "": "is empty",
        "/a": "has nothing before the slash",
        "a/": "has nothing after the slash",
        "a/b/c": "has a prefix that has characters",
        "A/b": "has a prefix that has characters",
        "a" * 64: "is 64 characters long",
        "a b": "has characters",
        "_a": "has characters",
    },
    syntax.label_value: {"a b": "has characters", "-a": "has characters", "a" * 64: "is 64 characters long"},
    google_syntax.region: {
        "us-east4-a": "is a zone, not a region; write us-east4",
        "us": "is not a region",
        "US-EAST4": "is not a region",
    },
    google_syntax.zone: {
        "us-east4": "is not a zone",
        "a": "is not a zone of Google Cloud; write one such as",
        "europe-west-2a": "is not a zone of Google Cloud; did you mean europe-west2-a?",
    },
    google_syntax.gke_cluster_name: {
        "1worker": "has characters",
        "a" * 41: "is 41 characters long; use at most 40",
        "worker_1": "has characters",
        "worker-": "has characters",
    },
    google_syntax.project_id: {
        "short": "is not a valid project ID",
        "My-Project": "is not a valid project ID",
        "123456789012": "is a project number; write the project id",
        "a" * 31: "is not a valid project ID",
        "my-project-": "is not a valid project ID",
    },
    google_syntax.project: {
        "123": "is not a valid project number",
        "short": "is not a valid project ID",
    },
    google_syntax.gcp_label_key: {
        "": "is not a valid label key",
        "1a": "is not a valid label key",
        "A": "is not a valid label key",
        "a" * 64: "is not a valid label key",
    },
    google_syntax.gcp_label_value: {
        "A": "is not a valid label value",
        "a b": "is not a valid label value",
        "a" * 64: "is not a valid label value",
    },
    addresses.chart: {
        "": "is not the reference of a Helm chart",
        "a b": "is not the reference",
        "x\napiVersion: v1": "is not the reference",
        "x\x1b[31m": "is not the reference",
    },
    google_syntax.member: {"bob": "is not a member", "user:a@" + "." * 100_000 + "@": "is not a member"},
    syntax.version: {
        "v0.19.2": "begins with a v; write 0.19.2",
        "0.19": "is not a valid version",
        "latest": "is not a valid version",
    },
    syntax.kind: {"": "is empty", "1Foo": "has characters", "Foo.Bar": "has characters"},
    syntax.admission_check_name: {"": "is empty", "c" * 317: "is 317 characters long; use at most 316"},
}


@pytest.mark.parametrize(("check", "text"), [(check, text) for check, texts in GOOD.items() for text in texts])
def test_good(check: syntax.Check, text: str) -> None:
    assert check(text) is None


@pytest.mark.parametrize(
    ("check", "text", "reason"), [(check, text, why) for check, texts in BAD.items() for text, why in texts.items()]
)
def test_bad_with_what_to_do(check: syntax.Check, text: str, reason: str) -> None:
    result = check(text)
    assert result is not None
    assert str(result).startswith(reason)
    assert result.fix


@pytest.mark.parametrize(
    ("given", "number"),
    [("0", 0), ("007", 7), ("9" * 18, 10**18 - 1), ("9" * 19, None), ("9" * 5000, None)]
    + [(text, None) for text in ("", "²", "٣", "-1", "+1", "1.0", "1e3", " 1", "1\n", "1_0", 5, None)],
)
def test_whole_numbers(given: object, number: int | None) -> None:
    assert syntax.whole_number(given) == number


@pytest.mark.parametrize(
    ("given", "number"),
    [("0", 0), ("-007.50", -7.5), (".5", 0.5), ("1e3", 1000), ("9" * 5000, float("inf")), ("1e999", float("inf"))]
    + [(text, None) for text in ("", ".", "e3", "²", "٣", "nan", "inf", "0x1", " 1", "1\n", "1_0", 5, None)],
)
def test_numbers(given: object, number: float | None) -> None:
    assert syntax.number(given) == number
