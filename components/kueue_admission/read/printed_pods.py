"""Pods, their tolerations, and the taints of nodes, as a cluster prints them."""

from __future__ import annotations

from typing import Final, NamedTuple

from kueue_admission.kernel.manifest import Manifest
from kueue_admission.read.printed import Printed

_ENDED: Final = ("Succeeded", "Failed")


class PrintedPod(Printed):
    """A Pod."""

    @property
    def phase(self) -> str:
        """Its phase."""
        return self.status.text("phase", "Pending")

    @property
    def is_over(self) -> bool:
        """Whether its containers have ended, and are not started again."""
        return self.phase in _ENDED

    @property
    def node(self) -> str:
        """The Node that it is on; empty: none yet."""
        return self.spec.text("nodeName")


class PrintedTaint(NamedTuple):
    """A taint as the API server prints it."""

    key: str
    value: str
    effect: str

    @classmethod
    def of(cls, taint: Manifest) -> PrintedTaint:
        """That of an entry of `taints`."""
        return cls(taint["key"], taint.get("value") or "", taint["effect"])


class PrintedToleration(NamedTuple):
    """A toleration as the API server prints it."""

    key: str | None
    operator: str | None
    value: str | None
    effect: str | None

    @classmethod
    def of(cls, toleration: Manifest) -> PrintedToleration:
        """That of an entry of `tolerations`."""
        return cls(*(toleration.get(field) for field in cls._fields))
