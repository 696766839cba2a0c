"""What one cluster would do over time: an admission engine on a virtual clock.

Nothing of Kueue's decisions is here: each cluster has a `decide.engine.Engine`, driven by `cluster`, on the clock of
`agenda`; `runner` lets admitted workloads run. No wall clock and no global randomness: the same input gives the same
result. Reading files is the caller's job.
"""
