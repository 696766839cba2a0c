"""What this company adds to kueue-fleet."""
