"""The scheduling cycle, and the snapshot it decides on."""
