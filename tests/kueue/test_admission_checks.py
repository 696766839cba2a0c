from __future__ import annotations

import pytest

import pulumi_mocks
from kueue_admission.api import AdmissionCheckSpec
from kueue_fleet import AdmissionCheck, ProvisioningRequestCheck
from kueue_fleet.fleet_file import AdmissionCheckEntry

DWS = AdmissionCheckEntry.model_validate(
    {"name": "dws", "provisioningRequest": {"provisioningClassName": "queued-provisioning.gke.io"}}
)


def test_a_provisioning_request_check_brings_its_config_and_is_waited_for() -> None:
    recording = pulumi_mocks.run(lambda: ProvisioningRequestCheck("eu/dws", DWS))
    config = recording.one("ProvisioningRequestConfig")
    check = recording.one("AdmissionCheck", custom=True)
    assert config.inputs["spec"]["provisioningClassName"] == "queued-provisioning.gke.io"
    assert check.inputs["spec"]["parameters"]["name"] == config.inputs["metadata"]["name"] == "dws"
    assert check.inputs["metadata"]["annotations"] == {"pulumi.com/waitFor": "condition=Active"}
    assert recording.is_before(config, check)


def test_a_check_of_another_controller_is_not_waited_for() -> None:
    spec = AdmissionCheckSpec(controller_name="lab.dev/residency")
    recording = pulumi_mocks.run(lambda: AdmissionCheck("residency", spec))
    assert recording.one("AdmissionCheck", custom=True).inputs["metadata"] == {"name": "residency"}


def test_unless_one_knows_that_the_controller_is_there() -> None:
    spec = AdmissionCheckSpec(controller_name="lab.dev/residency")
    recording = pulumi_mocks.run(lambda: AdmissionCheck("residency", spec, expect_active=True))
    assert "annotations" in recording.one("AdmissionCheck", custom=True).inputs["metadata"]


def test_an_entry_of_another_kind_is_refused() -> None:
    entry = AdmissionCheckEntry(name="residency", controller_name="lab.dev/residency")
    with pytest.raises(
        ValueError, match="AdmissionCheck residency: there is no provisioningRequest; use AdmissionCheck"
    ):
        pulumi_mocks.run(lambda: ProvisioningRequestCheck("residency", entry))
