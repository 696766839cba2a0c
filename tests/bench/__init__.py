"""Measurements, each beside a peer from the same run. `make bench` prints them; nothing here is a test."""
