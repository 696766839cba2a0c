"""A fleet file from what runs already: Kueue's objects of every cluster, and GKE's node pools.

The data of a fleet file whose rendering gives the same objects, and notes on what was left behind. Nothing is guessed:
where two clusters disagree in a way that one entry of a fleet file cannot say, that is a problem.
"""

from kueue_fleet.adopt.fleet import Adopted, Identity, adopt_fleet
from kueue_fleet.adopt.google_cloud import description_problems, mode_of
from kueue_fleet.adopt.platform import AdoptedCluster, Mode

__all__ = ["Adopted", "AdoptedCluster", "Identity", "Mode", "adopt_fleet", "description_problems", "mode_of"]
