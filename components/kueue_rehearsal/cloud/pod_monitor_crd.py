"""The resource definition of PodMonitor, for clusters whose fleet file has `podMonitors`.

It stands in for that of a Prometheus Operator: PodMonitors are checked, kept, and left alone.
Source: prometheus-operator@v0.91.0 example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml; of an
endpoint only the fields that the fleet writes are here, so that another one is seen to be dropped.
"""

from __future__ import annotations

from typing import Final

from kueue_fleet.kube.answers import Json
from kueue_fleet.objects.monitoring import POD_MONITOR_API
from kueue_rehearsal.cloud.gke_crds import ANY_OBJECT, resource_definition

_TEXT: Final[Json] = {"type": "string"}
_ENDPOINT: Final[Json] = {
    "type": "object",
    "properties": {
        "port": _TEXT,
        "path": _TEXT,
        "scheme": {**_TEXT, "enum": ["http", "https", "HTTP", "HTTPS"]},
        "interval": {**_TEXT, "pattern": "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?"
        "(([0-9]+)ms)?)$"},
        "tlsConfig": {"type": "object", "properties": {"insecureSkipVerify": {"type": "boolean"}}},
        "authorization": {
            "type": "object",
            "properties": {
                "type": _TEXT,
                "credentials": {"type": "object", "required": ["key"], "properties": {"key": _TEXT, "name": _TEXT}},
            },
        },
    },
}  # fmt: skip
_SPEC: Final[Json] = {
    "type": "object",
    "required": ["selector"],
    "properties": {
        "podMetricsEndpoints": {"type": "array", "items": _ENDPOINT},
        "selector": {
            "type": "object",
            "properties": {"matchLabels": {"type": "object", "additionalProperties": _TEXT}},
        },
    },
}
_GROUP, _, _VERSION = POD_MONITOR_API.partition("/")
POD_MONITORS: Final = resource_definition(
    _GROUP,
    "podmonitors",
    "PodMonitor",
    _VERSION,
    {"type": "object", "required": ["spec"], "properties": {"spec": _SPEC, "status": ANY_OBJECT}},
)
"""The CustomResourceDefinition."""
