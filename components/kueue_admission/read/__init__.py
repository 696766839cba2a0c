"""From Kubernetes objects, as kubectl prints them, to the core's data."""
