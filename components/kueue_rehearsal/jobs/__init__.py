"""Submitting jobs to a rehearsal, and following them."""
