"""The official client without an event loop, as the user of a kubeconfig; importing it takes long."""

from __future__ import annotations

import sys
import time
from threading import Lock
from typing import Any, Final

from kubernetes.client import ApiClient, Configuration
from urllib3 import HTTPHeaderDict

from kueue_fleet.kube.access import FILE_SECONDS, Access, Kubeconfigs, get_access


class CommandClient(ApiClient):
    """The API server of a context; empty: of the current one. Each request may raise AccessError too."""

    def __init__(self, kubeconfig: Kubeconfigs, context: str = "") -> None:
        """Raises AccessError."""
        self._of: Final = kubeconfig, context
        self._renewing = Lock()
        self._access = self._read(None)
        # urllib3 would try each request four times, and take as many times as long as its caller allows.
        configuration = Configuration(host=self._access.server, retries=0)
        if self._access.proxy:
            configuration.proxy, configuration.no_proxy = self._access.proxy, ""
        configuration.verify_ssl = not self._access.insecure
        configuration.tls_server_name = self._access.tls_server_name
        super().__init__(configuration)
        self._connect()

    def call_api(self, method: Any, url: Any, header_params: Any = None, *rest: Any, **named: Any) -> Any:
        """As the official client, with the headers of the user."""
        # A user may be in several groups: a dictionary would send one.
        headers = HTTPHeaderDict(header_params or {})
        for name, value in self._renewed().all_headers:
            headers.add(name, value)
        return super().call_api(method, url, headers, *rest, **named)

    def _read(self, known_access: Access | None) -> Access:
        interactive = sys.stdin is not None and sys.stdin.isatty()
        kubeconfig, context = self._of
        access = get_access(kubeconfig, known_access, context, interactive=interactive)
        self._fresh_until = time.monotonic() + FILE_SECONDS
        if known_access is None:
            self._credential_until = time.monotonic() + access.life(time.time())
        return access

    def _renewed(self) -> Access:
        """The access now. Raises AccessError."""
        with self._renewing:
            now = time.monotonic()
            if now >= self._fresh_until:
                place, known_access = self._access.place, self._access if now < self._credential_until else None
                self._access = self._read(known_access)
                if self._access.place != place:
                    self._connect()
            return self._access

    def _connect(self) -> None:
        """Believe whom the access believes, and prove the user by its certificate."""
        manager = self.rest_client.pool_manager
        manager.connection_pool_kw["ssl_context"] = self._access.tls()
        manager.clear()
