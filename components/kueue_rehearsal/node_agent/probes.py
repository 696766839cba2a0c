"""Probes: how a container shows that it has started, lives, and may get traffic.

`Threshold` decides, from one result after the other; `run_probe` asks once. Unlike a kubelet, the readiness and
startup probes of a container that is not ready yet ask at once and often (EAGER_SECONDS): `initialDelaySeconds` and
`periodSeconds` protect a slow machine from being judged too early, and a success cannot come too early. Failures
count as the Pod says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from kueue_rehearsal.node_agent.pods import port_number

EAGER_SECONDS = 0.25
"""From one probe to the next until the first success."""


@dataclass(slots=True)
class Threshold:
    """Turns single results into a verdict that needs several in a row to change."""

    success_threshold: int
    failure_threshold: int
    verdict: bool | None = None
    """None until one of the thresholds is reached for the first time."""
    _last: bool | None = None
    _in_a_row: int = 0

    def observe(self, success: bool) -> bool:
        """Takes one result; True when the verdict has just changed."""
        self._in_a_row = self._in_a_row + 1 if success == self._last else 1
        self._last = success
        needed_count = self.success_threshold if success else self.failure_threshold
        if self._in_a_row < needed_count or self.verdict == success:
            return False
        self.verdict = success
        return True


@dataclass(frozen=True, slots=True)
class ProbeSpec:
    """A probe with the API's defaults filled in. Times in seconds."""

    host: str
    port: int
    path: str | None
    """None for a TCP probe."""
    scheme: str
    headers: tuple[tuple[str, str], ...]
    initial_delay_seconds: int
    period_seconds: int
    timeout_seconds: int
    success_threshold: int
    failure_threshold: int

    def threshold(self) -> Threshold:
        """A new verdict for this probe."""
        return Threshold(self.success_threshold, self.failure_threshold)


def parse_probe(container: Mapping[str, Any], kind: str, pod_ip: str) -> ProbeSpec | None:
    """The probe `kind` (`readinessProbe` …) of a container, or None. Raises PodError for an unknown port name."""
    probe = container.get(kind)
    if not probe:
        return None
    http = probe.get("httpGet")
    handler = http or probe["tcpSocket"]
    return ProbeSpec(
        host=handler.get("host") or pod_ip,
        port=port_number(container, handler["port"]),
        path=(http.get("path") or "/") if http else None,
        scheme=(http.get("scheme") or "HTTP").lower() if http else "",
        headers=tuple((one["name"], one["value"]) for one in (http or {}).get("httpHeaders") or ()),
        initial_delay_seconds=probe.get("initialDelaySeconds") or 0,
        period_seconds=probe.get("periodSeconds") or 10,
        timeout_seconds=probe.get("timeoutSeconds") or 1,
        success_threshold=probe.get("successThreshold") or 1,
        failure_threshold=probe.get("failureThreshold") or 3,
    )


async def run_probe(client: aiohttp.ClientSession, probe: ProbeSpec) -> bool:
    """Asks once. An HTTP answer from 200 to 399 is a success; certificates are not checked, as in a kubelet."""
    try:
        async with asyncio.timeout(probe.timeout_seconds):
            if probe.path is None:
                _, writer = await asyncio.open_connection(probe.host, probe.port)
                writer.close()
                return True
            path = probe.path if probe.path.startswith("/") else f"/{probe.path}"
            url = f"{probe.scheme}://{probe.host}:{probe.port}{path}"
            async with client.get(url, headers=dict(probe.headers), allow_redirects=False, ssl=False) as response:
                return 200 <= response.status < 400
    except (OSError, TimeoutError, aiohttp.ClientError):
        return False
