"""Raw Kubernetes objects against the wire models."""
