"""The models of the fleet file, section by section, and what they mean for each cluster."""
