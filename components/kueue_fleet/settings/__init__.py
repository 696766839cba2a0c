"""What the fleet's controller decides by: the sections of a fleet file that it reads, and nothing of the others."""
