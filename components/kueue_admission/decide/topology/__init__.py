"""Topology-aware scheduling: domains, the search in them, and placement in an assignment."""
