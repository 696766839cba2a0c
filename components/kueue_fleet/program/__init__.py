"""Fleets of a Pulumi program: the program is run under Pulumi's mocks, and each `Fleet` in it says what it declares."""
