"""Facts about GKE and Compute Engine: machine types, zones, regions, labels and taints.

Nothing here knows the fleet file, Pulumi or Kubernetes' API; `fleet_file`, `rehearsal` and the policy pack build on it.
It imports nothing else of the library.
"""
