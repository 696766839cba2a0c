"""Tests of one fleet with its controller, which ends with the last of these files."""
