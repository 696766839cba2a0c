"""A cluster that is there, with objects in it: taken over as they are, and left there."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client, config

from fleet_in_rehearsal import copied

NAME = "theirs"
FLEET: dict[str, Any] = {
    "name": "guest",
    "project": "their-project",
    "deletionProtection": False,
    "clusters": [
        {
            "name": NAME,
            "role": "standalone",
            "region": "us-central1",
            "mode": "Standard",
            "existing": True,
            "upsertExistingObjects": True,
        }
    ],
    "flavors": [{"name": "any", "nodeLabels": {"lab/kind": "any"}}],
    "clusterQueues": [
        {
            "name": "main",
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu", "memory"],
                    "flavors": [
                        {
                            "name": "any",
                            "resources": [
                                {"name": "cpu", "nominalQuota": 8},
                                {"name": "memory", "nominalQuota": "8Gi"},
                            ],
                        }
                    ],
                }
            ],
        }
    ],
    "teams": [{"name": "vision", "localQueues": [{"name": "main", "clusterQueue": "main"}]}],
}


def test_what_exists_is_taken_over_and_the_cluster_stays(tmp_path_factory: pytest.TempPathFactory) -> None:
    def only_guests(fleet: dict[str, Any]) -> None:
        fleet.clear()
        fleet.update(FLEET)

    with copied("dev", tmp_path_factory) as lab, lab.session.exclusive(), lab.session.running(keep=False):
        lab.session.stand_ins()
        lab.change(only_guests)
        assert lab.session.make_existing_clusters(lab.fleet) == [NAME]
        lab.session.write_kubeconfig(lab.fleet)
        made: Any = config.new_client_from_config(str(lab.session.paths.kubeconfig), context=NAME)  # type: ignore[no-untyped-call]
        core: Any = client.CoreV1Api(made)
        core.create_namespace({"metadata": {"name": "vision", "labels": {"owner": "them"}}})
        before = core.read_namespace("vision").metadata
        lab.up()
        made_by_google = [(step.op, step.name) for step in lab.steps if step.type.startswith(("gcp:con", "gcp:comp"))]
        assert made_by_google == [("read", NAME)]
        after = core.read_namespace("vision").metadata
        assert after.uid == before.uid
        assert after.labels.items() > before.labels.items()
        assert set(lab.objects(NAME, "clusterqueues")) == {"main"}
        assert lab.up().unchanged, lab.touched()
        lab.run(lambda project: project.destroy())
        assert [cluster["name"] for cluster in lab.session.client.clusters()] == [NAME]
        groups = client.ApisApi(made).get_api_versions().groups
        assert "kueue.x-k8s.io" not in {group.name for group in groups}
