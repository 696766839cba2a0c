"""Faults that the controller survives; their fleet ends with the last of these files."""
