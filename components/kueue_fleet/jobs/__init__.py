"""Jobs as a fleet takes them: what people submit, and what Kubernetes, Kueue, GKE and the fleet refuse of it."""
