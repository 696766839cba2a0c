"""MultiKueueConfig and MultiKueueCluster.

Source: kueue@v0.19.2 apis/kueue/v1beta2/multikueue_types.go (schema, CEL); no webhooks.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from kueue_admission.kernel.base import RuledModel, SpecModel, Text
from kueue_admission.kernel.form_rules import EXCLUDED
from kueue_admission.kernel.given import ListOfText
from kueue_admission.kernel.problem import Problem

ClusterName = Annotated[Text, Field(min_length=1, max_length=256)]
"""Name of a MultiKueueCluster, or of what it points at."""


class KubeConfig(SpecModel):
    """Where the kubeconfig of a worker is."""

    location: ClusterName
    """Name of a Secret in Kueue's namespace with the key `kubeconfig`, or a path below /etc/multikueue/kubeconfigs."""
    location_type: Literal["Secret", "Path"] = "Secret"
    """What `location` is; default Secret."""


class ClusterProfileReference(SpecModel):
    """A ClusterProfile in Kueue's namespace."""

    name: ClusterName
    """Name of the ClusterProfile."""


class ClusterSource(RuledModel):
    """How the manager reaches a worker: exactly one of the two."""

    kube_config: KubeConfig | None = None
    """By a kubeconfig."""
    cluster_profile_ref: ClusterProfileReference | None = None
    """By a ClusterProfile."""

    def own_problems(self) -> Iterator[Problem]:
        """CEL: exactly one of kubeConfig and clusterProfileRef."""
        if (self.kube_config is None) == (self.cluster_profile_ref is None):
            both = self.kube_config is not None
            yield EXCLUDED.at(
                "",
                "both kubeConfig and clusterProfileRef are set"
                if both
                else "neither kubeConfig nor clusterProfileRef is set",
                "set exactly one of the two",
            )


class MultiKueueClusterSpec(RuledModel):
    """`spec` of a MultiKueueCluster."""

    replaced: ClassVar[Mapping[str, str]] = {"kubeConfig": "clusterSource.kubeConfig"}
    cluster_source: ClusterSource
    """How the manager reaches the worker."""


MOST_CLUSTERS: Final = 20
"""How many clusters a MultiKueueConfig names at most, and so how many a queue's jobs are offered to."""


class MultiKueueConfigSpec(RuledModel):
    """`spec` of a MultiKueueConfig."""

    clusters: Annotated[ListOfText[ClusterName], Field(min_length=1, max_length=MOST_CLUSTERS)]
    """MultiKueueClusters, most preferred first: the Incremental dispatcher goes through them in this order."""
    quota_management: Literal["Manual", "Automated"] | None = None
    """Automated rewrites the manager's quotas (alpha); absent counts as Manual."""

    def own_problems(self) -> Iterator[Problem]:
        """CEL: clusters unique."""
        yield from self.listed_once("clusters", "cluster")
