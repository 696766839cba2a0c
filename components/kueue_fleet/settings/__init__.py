"""What the fleet's controller decides by: the sections of a fleet file that it reads, and nothing of the others.

`configuration` is all of it, as in the controller's ConfigMap; `objects.controller_values` makes it of a fleet.
"""
