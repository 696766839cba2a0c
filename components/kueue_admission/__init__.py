"""Kueue's decisions without a cluster: its objects, what it admits and preempts, why a job waits, what time brings.

`api` has Kueue's objects, `read` takes what a cluster prints, `decide` decides as Kueue does, `explain` says why,
`simulate` lets time pass. `kernel` is the ground on which they stand. Nothing here knows of Google Cloud or Pulumi.
"""
