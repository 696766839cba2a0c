"""A small kubelet: one Node of a cluster, whose pods are processes of this machine.

`agent` registers the Node and follows the pods bound to it; `worker` runs one pod; `programs` says which image is
which program here; `pods`, `volumes`, `status` and `probes` decide what a kubelet would decide; `services` lets the
API server reach the pods' webhooks; `mounts` keeps each pod's volumes and its service account's token up to date.
"""
