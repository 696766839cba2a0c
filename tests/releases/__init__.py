"""Releases of Kueue: what makes their tables."""
