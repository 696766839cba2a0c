"""What stands in for Google Cloud in a rehearsal: nodes, DWS, Spot, and what GKE adds to a cluster."""
