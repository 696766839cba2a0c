"""Quota in the cohort tree, and the shares that fair sharing compares."""
