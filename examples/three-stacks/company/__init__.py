"""The company's fleets."""
