"""What a fleet would do over time: the clusters of `kueue_admission.simulate`, and what dispatches among them."""
