"""The policy pack in a checkout, in the virtual environment of `make`."""

import kueue_fleet_policies.pack.__main__  # noqa: F401
