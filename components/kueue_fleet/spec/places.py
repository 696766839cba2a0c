"""Types for names and places of Google Cloud: text that follows its syntax."""

from __future__ import annotations

from typing import Annotated

from kueue_fleet.spec import syntax
from kueue_fleet.spec.base import Text, syntax_of

GkeClusterName = Annotated[Text, syntax_of(syntax.gke_cluster_name)]
Region = Annotated[Text, syntax_of(syntax.region)]
Ipv4Range = Annotated[Text, syntax_of(syntax.ipv4_range)]
PodIpv4Range = Annotated[Text, syntax_of(syntax.secondary_range)]
AddressRange = Annotated[Text, syntax_of(syntax.address_range)]
Zone = Annotated[Text, syntax_of(syntax.zone)]
ProjectId = Annotated[Text, syntax_of(syntax.project_id)]
ResourceName = Annotated[Text, syntax_of(syntax.gce_name)]
"""Name of a resource of Compute Engine."""
GcpLabelKey = Annotated[Text, syntax_of(syntax.gcp_label_key)]
GcpLabelValue = Annotated[Text, syntax_of(syntax.gcp_label_value)]
KmsKey = Annotated[Text, syntax_of(syntax.kms_key)]
GoogleServiceAccountAddress = Annotated[Text, syntax_of(syntax.google_service_account)]
Member = Annotated[Text, syntax_of(syntax.member)]
IamRole = Annotated[Text, syntax_of(syntax.iam_role)]
