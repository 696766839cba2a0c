from __future__ import annotations

import yaml

from kueue_admission.kernel.names import RUN_SECONDS_ANNOTATION
from kueue_rehearsal.control_planes.kwok import STAGES


def test_the_stages_are_documents_that_stand_alone() -> None:
    # kwok reads them one by one: an anchor of one document does not exist in the next.
    documents = [yaml.safe_load(text) for text in STAGES.read_text().split("\n---\n")]
    assert [document["metadata"]["name"] for document in documents] == [
        "node-ready",
        "pod-run",
        "pod-refuse",
        "pod-succeed",
        "pod-fail",
        "pod-terminate",
        "pod-delete",
    ]
    text = STAGES.read_text()
    assert RUN_SECONDS_ANNOTATION in text
    assert "kueue-fleet.dev/exit-code" in text
