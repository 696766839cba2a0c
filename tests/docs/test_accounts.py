"""What the docs say of accounts and Secrets is what is rendered."""

from __future__ import annotations

import re
from pathlib import Path

from tests.fleet_file.builders import changed, fleet_data

from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.worker_tokens import worker_tokens
from kueue_fleet.objects import render_cluster

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "tasks" / "rotate-credentials.md").read_text()


def with_controller() -> FleetSpec:
    data = changed(fleet_data(), {"controller": {"image": "example.com/controller:1"}})
    data["multiKueue"] |= {"dispatcher": "External", "external": {"name": "kueue-fleet.dev/dispatcher"}}
    return parse_fleet(data)


def test_the_accounts_of_the_page_are_those_that_workers_get() -> None:
    objects = render_cluster(with_controller(), "worker-a")
    accounts = {
        f"system:serviceaccount:{one['metadata']['namespace']}:{one['metadata']['name']}"
        for one in objects
        if one["kind"] == "ServiceAccount" and one["metadata"]["namespace"] == "kueue-system"
    }
    assert set(re.findall(r"system:serviceaccount:[a-z:-]+", PAGE)) == accounts


def test_the_secrets_of_the_page_are_those_that_hold_the_tokens() -> None:
    places = worker_tokens(with_controller())
    written = {
        (place.secret.replace("worker-a", "WORKER").replace("2026-11", "ROTATION"), place.secret_namespace)
        for place in places
        if place.worker == "worker-a"
    }
    assert set(re.findall(r"Secret `(\S+-ROTATION)` in `(\S+)`", PAGE)) == written
    first = {place.first_secret.replace("2026-11", "ROTATION") for place in places}
    assert set(re.findall(r"a Secret on the worker, `(\S+)`", PAGE)) <= first


def test_no_page_names_an_account_that_is_not_there() -> None:
    for page in DOCS.rglob("*.md"):
        assert "kueue-fleet-multikueue" not in page.read_text(), page.name
