"""The fleet's controller: the admission core in a cluster. It lists and watches, decides, and writes.

`main` runs it. `watching` keeps `manager` and `workers` up to date, `reconcile` asks the core about one workload after
the other (`work_queue`) and writes what `patches` makes of the answer. All it must remember is in the clusters' own
objects. Only `kube` and `election` know the Kubernetes client.
"""
