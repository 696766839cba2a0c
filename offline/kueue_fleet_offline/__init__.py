"""Stand-ins for Pulumi's Python language host and policy analyzer, where those are absent.

The rehearsal finds them by the entry points in `offline/pyproject.toml`. Every module replaces one executable, works on
loopback only, and refuses by name whatever it does not do.

This package imports nothing when it is imported.
"""
