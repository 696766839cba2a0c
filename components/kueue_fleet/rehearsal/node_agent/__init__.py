"""A small kubelet: one Node of a cluster, whose pods are processes of this machine.

`agent` registers the Node and follows the pods bound to it; `worker` runs one pod; `programs` says which image is
which program here; `pods`, `volumes`, `status` and `probes` decide what a kubelet would decide; `services` lets the
API server reach the pods' webhooks; `credentials` gives each pod its own service account.
"""

from kueue_fleet.rehearsal.node_agent.agent import NodeAgent
from kueue_fleet.rehearsal.node_agent.programs import Program, default_programs

__all__ = ["NodeAgent", "Program", "default_programs"]
