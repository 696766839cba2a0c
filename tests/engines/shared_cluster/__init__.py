"""Tests of one control plane, which ends with the last of these files."""
