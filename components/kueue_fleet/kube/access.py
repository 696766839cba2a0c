"""How to reach an API server: a kubeconfig, or the account of the pod.

Source: client-go@v0.36.3 tools/clientcmd/validation.go, transport/round_trippers.go.
"""

from __future__ import annotations

import base64
import math
import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import quote, urlsplit

from kueue_fleet.kube.exec_plugin import Credential, ExecError, ExecPlugin, read_exec
from kueue_fleet.kube.kubeconfig import AccessError, Entry, read_kubeconfig

Kubeconfigs = Path | Sequence[Path] | None
"""A kubeconfig, or several; None: the account of the pod."""

_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
FILE_SECONDS: Final = 10.0
"""After which the files of a kubeconfig are read again."""
_EXPIRY_SECONDS: Final = 120.0
"""How long before a plugin's credential expires it has to give another one; at most half of the credential's life."""
_IN_NAMES: Final = "!#$&'*+-.^_`|~"
"""Besides letters and digits, what a name of a header may have. Source: client-go transport/round_trippers.go."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach an API server."""

    server: str
    authority: str | None = field(repr=False)
    token: str = field(repr=False)
    """Empty where the plugin was not asked yet, and where the user has another credential."""
    tls_server_name: str | None = None
    plugin: ExecPlugin | None = None
    """What gives the credential; None: it is in files, which may change at any time."""
    expires: float = math.inf
    """When the plugin's credential expires, in seconds since 1970."""
    certificate: tuple[str, str] | None = field(default=None, repr=False)
    """The user's certificate and key."""
    login: str = field(default="", repr=False)
    """The user's name and password."""
    insecure: bool = False
    """Whether any server is believed."""
    proxy: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """Of every request, without the credential: whom the user impersonates, and whether answers may be compressed."""

    @property
    def place(self) -> tuple[object, ...]:
        """What a connection depends on."""
        return self.server, self.authority, self.tls_server_name, self.certificate, self.insecure, self.proxy

    @property
    def all_headers(self) -> Iterator[tuple[str, str]]:
        """Those of every request, with the credential."""
        if self.token:
            yield "Authorization", f"Bearer {self.token}"
        elif self.login:
            yield "Authorization", f"Basic {base64.b64encode(self.login.encode()).decode()}"
        yield from self.headers

    def tls(self) -> ssl.SSLContext:
        """Whom a connection believes, and how the user proves itself; not to be changed. Raises AccessError."""
        if self.authority is None and self.certificate is None and not self.insecure:
            return _authorities_of_the_system()
        try:
            context = ssl.create_default_context(cadata=self.authority)
            if self.certificate is not None:
                with TemporaryDirectory() as folder:
                    pair = Path(folder, "pair")
                    pair.touch(0o600)
                    pair.write_text("\n".join(self.certificate))
                    context.load_cert_chain(pair)
        except (ssl.SSLError, ValueError):
            raise AccessError(f"{self.server}: a certificate or key is not PEM; correct the kubeconfig") from None
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def life(self, now: float) -> float:
        """Seconds for which a credential is used before the plugin is asked again; infinity: it does not expire."""
        seconds_left = self.expires - now
        return max(seconds_left - _EXPIRY_SECONDS, seconds_left / 2)


@cache
def _authorities_of_the_system() -> ssl.SSLContext:
    """One for all connections: it takes 17 ms and 0.8 MiB."""
    return ssl.create_default_context()


def get_access(
    kubeconfig: Kubeconfigs, known_access: Access | None = None, context: str = "", *, interactive: bool = False
) -> Access:
    """The access that a kubeconfig gives now, with a credential of its plugin if it has one.

    The credential of `known_access`, if that is of the same plugin: it is not asked again. `interactive`: a plugin may
    ask on the terminal. Raises AccessError.
    """
    access = read_access(kubeconfig, context=context)
    if access.plugin is None:
        return access
    credential: Credential | Access
    if known_access is not None and known_access.plugin == access.plugin:
        credential = known_access
    else:
        try:
            credential = access.plugin.credential(interactive=interactive)
        except ExecError as error:
            raise AccessError(f"{access.server}: the credentials plugin failed: {error}") from None
    return replace(access, token=credential.token, certificate=credential.certificate, expires=credential.expires)


def read_access(kubeconfig: Kubeconfigs, environ: Mapping[str, str] = os.environ, context: str = "") -> Access:
    """The access that a kubeconfig gives, or the account of the pod. `context` is another than the current one.

    Raises AccessError.
    """
    if kubeconfig is None:
        return _of_pod(environ)
    config = read_kubeconfig((kubeconfig,) if isinstance(kubeconfig, Path) else kubeconfig)
    chosen_context = config.context(context)
    cluster, user = config.cluster(chosen_context), config.user(chosen_context)
    access = _of_user(user, _of_cluster(cluster))
    if user.fields.get("exec") and not (access.token or access.login or access.certificate):
        try:
            return replace(access, plugin=read_exec(user, cluster, access.authority))
        except ExecError as error:
            raise user.error("exec", str(error)) from None
    if access.server.startswith("https:") and not (access.token or access.login or access.certificate):
        raise user.error("", "has no credential", "give a kubeconfig with a token, a certificate or an exec plugin")
    return access


def _of_pod(environ: Mapping[str, str]) -> Access:
    try:
        host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
        host = f"[{host}]" if ":" in host else host
        token = (_ACCOUNT / "token").read_text().strip()
        return Access(f"https://{host}:{port}", (_ACCOUNT / "ca.crt").read_text(), token)
    except (OSError, KeyError, ValueError) as error:
        text = f"the account of the pod cannot be used: {type(error).__name__}; give a kubeconfig"
        raise AccessError(text) from None


def _of_cluster(cluster: Entry) -> Access:
    """The server and how it proves itself, without any user."""
    server = cluster.text("server").rstrip("/")
    if urlsplit(server).scheme not in ("http", "https"):
        raise cluster.error("server", "has no address", "write https://HOST")
    # GKE's DNS endpoints have a certificate of a public authority.
    authority = cluster.content("certificate-authority") or None
    insecure = cluster.flag("insecure-skip-tls-verify")
    if authority and insecure:
        raise cluster.error("insecure-skip-tls-verify", "is beside a certificate authority", "keep one of them")
    proxy = cluster.text("proxy-url") or None
    if proxy and urlsplit(proxy).scheme not in ("http", "https"):
        raise cluster.error("proxy-url", f"{urlsplit(proxy).scheme or 'no'} scheme", "give a proxy of http or https")
    plain = (("Accept-Encoding", "identity"),) if cluster.flag("disable-compression") else ()
    name = cluster.text("tls-server-name") or None
    return Access(server, authority, "", name, insecure=insecure, proxy=proxy, headers=plain)


def _of_user(user: Entry, server: Access) -> Access:
    """The access of a user with what the kubeconfig itself has."""
    if user.fields.get("auth-provider"):
        raise user.error("auth-provider", "is not supported", "use an exec plugin, such as kubelogin")
    token = _header_value(user, "token", user.file("tokenFile").strip() or user.text("token"))
    name, password = user.text("username"), user.text("password")
    login = f"{name}:{password}" if name or password else ""
    if token and login:
        raise user.error("username", "is beside a token", "keep one of them")
    certificate, key = user.content("client-certificate"), user.content("client-key")
    if bool(certificate) != bool(key):
        raise user.error("client-certificate" if key else "client-key", "is missing beside the other one", "add it")
    return replace(
        server,
        token=token,
        login=login,
        certificate=(certificate, key) if certificate else None,
        headers=(*server.headers, *_impersonation(user)),
    )


def _header_value(entry: Entry, name: str, value: str) -> str:
    """The value, as a header can have it. Raises AccessError."""
    if not (value.isascii() and value.isprintable()):
        raise entry.error(name, "has characters that a header cannot have")
    return value


def _impersonation(user: Entry) -> Iterator[tuple[str, str]]:
    """The headers by which an API server takes a user for another one."""
    name, uid, groups = user.text("as"), user.text("as-uid"), user.texts("as-groups")
    extra = user.fields.get("as-user-extra") or {}
    if not isinstance(extra, Mapping):
        raise user.error("as-user-extra", "is not a map of lists")
    if not name:
        if uid or groups or extra:
            raise user.error("as", "is missing beside as-uid, as-groups or as-user-extra", "name a user")
        return
    yield "Impersonate-User", _header_value(user, "as", name)
    if uid:
        yield "Impersonate-Uid", _header_value(user, "as-uid", uid)
    yield from (("Impersonate-Group", _header_value(user, "as-groups", group)) for group in groups)
    inside = replace(user, path=f"{user.path}.as-user-extra", fields=extra)
    for key in map(str, extra):
        header = f"Impersonate-Extra-{quote(key, safe=_IN_NAMES)}"
        yield from ((header, _header_value(inside, key, value)) for value in inside.texts(key))
