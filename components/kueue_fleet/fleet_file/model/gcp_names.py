"""Names and places of Google Cloud: types for text that follows its syntax, and names shortened to fit."""

from __future__ import annotations

import hashlib
from typing import Annotated, Final

from kueue_admission.kernel.base import Text, syntax_of
from kueue_fleet.gke import google_syntax

GkeClusterName = Annotated[Text, syntax_of(google_syntax.gke_cluster_name)]
"""Name of a GKE cluster or node pool."""
GkeVersion = Annotated[Text, syntax_of(google_syntax.gke_version)]
"""A version of GKE: a minor version, or one of its patches."""
Region = Annotated[Text, syntax_of(google_syntax.region)]
"""A region, such as europe-west4."""
Ipv4Range = Annotated[Text, syntax_of(google_syntax.ipv4_range)]
"""A range of private IPv4 addresses, such as 10.0.0.0/20."""
PodIpv4Range = Annotated[Text, syntax_of(google_syntax.secondary_range)]
"""A range of IPv4 addresses for pods, large enough for a node."""
AddressRange = Annotated[Text, syntax_of(google_syntax.address_range)]
"""A range of addresses, IPv4 or IPv6."""
Zone = Annotated[Text, syntax_of(google_syntax.zone)]
"""A zone, such as europe-west4-a."""
ProjectId = Annotated[Text, syntax_of(google_syntax.project_id)]
"""Id of a Google Cloud project, not its number."""
Project = Annotated[Text, syntax_of(google_syntax.project)]
"""Number of a Google Cloud project, or its id."""
ResourceName = Annotated[Text, syntax_of(google_syntax.gce_name)]
"""Name of a resource of Compute Engine."""
GcpLabelKey = Annotated[Text, syntax_of(google_syntax.gcp_label_key)]
"""Key of a label on resources of Google Cloud."""
GcpLabelValue = Annotated[Text, syntax_of(google_syntax.gcp_label_value)]
"""Value of a label on resources of Google Cloud."""
KmsKey = Annotated[Text, syntax_of(google_syntax.kms_key)]
"""Full name of a key of Cloud KMS."""
GoogleServiceAccountAddress = Annotated[Text, syntax_of(google_syntax.google_service_account)]
"""Address of a Google service account."""
TeamAccountAddress = Annotated[Text, syntax_of(google_syntax.google_service_account_or_no_project)]
"""The same, of a team: that it has a project is a rule of the team."""
Member = Annotated[Text, syntax_of(google_syntax.member)]
"""Who has a right: `group:`, `user:` or `serviceAccount:` and an address."""
EmailAddress = Annotated[Text, syntax_of(google_syntax.email_address)]
"""Address of a user or group."""
ApiName = Annotated[Text, syntax_of(google_syntax.api)]
"""Name of an API, such as container.googleapis.com."""
IamRole = Annotated[Text, syntax_of(google_syntax.iam_role)]
"""A role of IAM, such as roles/storage.objectUser."""


_DIGEST_LENGTH: Final = 6


def with_digest(text: str, distinct: str, longest: int) -> str:
    """The beginning of `text` and a digest of `distinct`: `longest` characters at most."""
    digest = hashlib.sha256(distinct.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{text[: longest - _DIGEST_LENGTH - 1].rstrip('-')}-{digest}"
