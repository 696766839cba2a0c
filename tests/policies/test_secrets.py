"""What is taken for a secret and what is not; how secrets and unknown values come through a repair."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import json_format, struct_pb2  # type: ignore[import-untyped]
from pulumi.runtime import proto
from pulumi_policy import EnforcementLevel
from pulumi_policy.deserialize import SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY
from pulumi_policy.policy import _PolicyAnalyzerServicer
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE
from pulumi_policy.secret import Secret
from tests.policies.declared import Seed, as_input, kube
from tests.policies.seeds import SEEDS, TOKEN

from kueue_fleet_policies import RULES, ResourceRule
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.secrets import is_secret

RULE = {rule.name: rule for rule in RULES}
REPAIRED = [seed for seed in SEEDS if RULE[seed.rule].remediable]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DB_PASSWORD", "correct-horse"),
        ("dbPassword", "correct-horse"),
        ("db.pass", "correct-horse"),
        ("token", "abcdef"),
        ("API_KEY", "abcdef"),
        ("client-secret", "abcdef"),
        ("clientSecret", "abcdef"),
        ("credentials", "user:word"),
        ("HUGGING_FACE_HUB_TOKEN", "correct-horse"),
        ("clientToken", "abcdef"),
        ("myAuthToken", "abcdef"),
        ("default-token", "a1b2c3d4e5f6"),
        ("PGPASSWORD", "correct-horse"),
        ("MYSQL_PWD", "correct-horse"),
        ("SECRET_KEY", "correct-horse"),
        ("MINIO_SECRET_KEY", "correct-horse"),
        ("DB_PASSWORD_OLD", "correct-horse"),
        ("MY_PASSWORD_1", "correct-horse"),
        ("PASSWORD2", "correct-horse"),
        ("DATADOG_TOKEN", "correct-horse"),
        ("ADMIN_TOKEN", "correct-horse"),
        ("NGROK_AUTHTOKEN", "correct-horse"),
        ("DATABASE_URL", "postgres://app:correct-horse@db:5432/x"),
        ("REDIS", "redis://:correct-horse@redis"),
        ("note", "hf_" + "aBcDeF" * 6),
        ("note", "glpat-" + "aBcD1" * 4),
        ("note", "github_pat_" + "aBcD1" * 5),
        ("note", "sk-proj-" + "aBcD1" * 5),
        ("EOS_TOKEN", TOKEN),
        ("note", TOKEN),
        ("note", "-----BEGIN PRIVATE KEY-----\nMIIE"),
        ("note", "AKIA" + "ABCDEFGHIJKLMNOP"),
        ("note", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"),
    ],
)
def test_a_secret_is_known_by_its_name_or_by_its_looks(name: str, value: str) -> None:
    assert is_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bypass", "on"),
        ("compass", "north"),
        ("monkey", "banana"),
        ("TOKEN_FILE", "/var/run/token"),
        ("PASSWORD_SECRET_NAME", "db"),
        ("DB_PASSWORD", "/run/secrets/db"),
        ("DB_PASSWORD", "$(FROM_SECRET)"),
        ("DB_PASSWORD", "${FROM_SECRET}"),
        ("DB_PASSWORD", "projects/p/secrets/db/versions/1"),
        ("DB_PASSWORD", ""),
        ("MOUNT_TOKEN", "false"),
        ("MAX_TOKEN", "512"),
        ("password", 7),
        ("TOKENIZER", "sentencepiece"),
        # Settings of language models.
        ("EOS_TOKEN", "</s>"),
        ("eosToken", "<|endoftext|>"),
        ("pad_token", "<pad>"),
        ("BOS_TOKEN", "begin_of_text"),
        ("MAX_NEW_TOKEN", "4096"),
        ("max-token", "131072"),
        ("image.token", "[IMG]"),
        ("IMAGE_TOKEN", "reserved_special_token_0"),
        ("USER_TOKEN", "<|user|>"),
        ("web_token", "<web>"),
        ("service_token", "[SVC]"),
        ("OPENAI_API_KEY", "EMPTY"),
        ("ALLOW_EMPTY_PASSWORD", "yes"),
        ("IMAGE_PULL_SECRET", "regcred"),
        ("TLS_SECRET", "webhook-tls-1a2b3c4d"),
        ("FORWARD_PASS", "fused"),
        ("DATABASE_URL", "postgres://app:${DB_PASSWORD}@db"),
        ("DATABASE_URL", "postgres://app@db:5432/x"),
        ("image", "registry.example.com/sk-learn-training-pipeline-nightly"),
        ("default-token", "see-vault"),
    ],
)
def test_what_only_sounds_like_one_is_none(name: str, value: Any) -> None:
    assert not is_secret(name, value)


@pytest.mark.parametrize(
    "annotations",
    [{"checksum/credentials": "4f2a9c"}, {"example.com/tls-secret": "tls"}, {"example.com/tokenizer": "x"}],
)
def test_annotations_may_name_a_secret(annotations: dict[str, str]) -> None:
    rule = RULE["secret-not-in-annotations"]
    assert isinstance(rule, ResourceRule)
    declared = kube("apps/v1:Deployment", "x", {"metadata": {"annotations": annotations}}, by="p")
    assert rule.problems(Resource.of(as_input(declared))) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"auth": {"password": "hunter2"}}, {"auth": {"password": Secret("hunter2")}}),
        (
            {"extraEnv": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "LEVEL", "value": "debug"}]},
            {"extraEnv": [{"name": "DB_PASSWORD", "value": Secret("hunter2")}, {"name": "LEVEL", "value": "debug"}]},
        ),
    ],
)
def test_values_of_a_chart_are_encrypted_where_their_name_says_so(values: Any, expected: Any) -> None:
    rule = RULE["secret-chart-values-encrypted"]
    assert isinstance(rule, ResourceRule)
    assert rule.remedy is not None
    props = {"values": values}
    rule.remedy(props)
    assert shown(props["values"]) == shown(expected)


def shown(value: Any) -> Any:
    """`value`, with secrets that compare."""
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shown(item) for item in value]
    return ("secret", value.value) if isinstance(value, Secret) else value


def remediated(seed: Seed, props: dict[str, Any]) -> dict[str, Any] | None:
    """The properties that a repair hands back to the engine, as they go over the wire."""
    policy = RULE[seed.rule].policy()
    policy.enforcement_level = EnforcementLevel.REMEDIATE
    servicer: Any = _PolicyAnalyzerServicer("pack", "0", [policy], EnforcementLevel.ADVISORY)
    sent = struct_pb2.Struct()
    sent.update(props)
    one = seed.culprit
    answer = servicer.Remediate(proto.AnalyzeRequest(type=one.type, name=one.name, urn=one.urn, properties=sent), None)
    assert [given for given in answer.remediations if given.diagnostic] == []
    changed = [json_format.MessageToDict(given.properties) for given in answer.remediations]
    assert len(changed) <= 1
    return changed[0] if changed else None


@pytest.mark.parametrize("seed", REPAIRED, ids=[seed.rule for seed in REPAIRED])
def test_a_repair_keeps_secrets_secret_and_unknowns_unknown(seed: Seed) -> None:
    secret = {SPECIAL_SIG_KEY: SPECIAL_SECRET_SIG, "value": "hidden"}
    props = {**seed.culprit.known(), "hiddenThing": secret, "laterThing": UNKNOWN_STRING_VALUE}
    changed = remediated(seed, props)
    assert changed is not None
    assert changed["hiddenThing"] == secret
    assert changed["laterThing"] == UNKNOWN_STRING_VALUE
    assert remediated(seed, changed) is None


@pytest.mark.parametrize("seed", REPAIRED, ids=[seed.rule for seed in REPAIRED])
def test_a_repair_obeys_an_exemption(seed: Seed) -> None:
    rule = RULE[seed.rule]
    assert isinstance(rule, ResourceRule)
    exemptions = [{"resource": seed.culprit.name, "reason": "there is a reason for it"}]
    args = as_input(seed.culprit, config={"exemptions": exemptions})
    assert rule.policy().remediate(args) is None
    assert rule.policy().remediate(as_input(seed.culprit)) is not None
