"""Tests with real engines."""
