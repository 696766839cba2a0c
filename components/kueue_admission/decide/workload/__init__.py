"""One workload: its state, and what Kueue's workload controller does with it."""
