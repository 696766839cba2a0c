"""The admission core: what Kueue decides, as functions and one engine. Deterministic: no I/O, no clock.

Start at `engine.Engine`: events in (`events`), decisions out (`decisions`), from objects that `read` parses.
Below it, one cycle (`cycle`) nominates the heads of the queues (`pending`), finds flavors (`assigner`) and victims
(`preemption`) on the cohort trees (`cohort_tree`, `cache`). Pinned to Kueue 0.19.2; docs/fidelity.md has what is
modelled, refused and ignored. No clock, randomness, file or network.
"""
