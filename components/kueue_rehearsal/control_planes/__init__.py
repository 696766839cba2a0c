"""The real control planes of a rehearsal's clusters."""
