"""Google's provider, imported when a part of it is first declared: a fleet without GKE does not need it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pulumi_gcp as gcp
else:
    import lazy_loader

    gcp = lazy_loader.load("pulumi_gcp")

__all__ = ["gcp"]
