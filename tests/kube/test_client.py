from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import yaml
from aiohttp import web

from kueue_fleet.kube import access as access_module
from kueue_fleet.kube import client, exec_plugin
from kueue_fleet.kube.access import read_access
from kueue_fleet.kube.answers import ApiError
from kueue_fleet.kube.api import Identity
from kueue_fleet.kube.client import KubeApi
from kueue_fleet.kube.kubeconfig import AccessError
from kueue_rehearsal.control_planes.certificates import RehearsalAuthority

CA = base64.b64encode(b"PEM").decode()


def kubeconfig(server: str = "https://host", user: Any = None, cluster: Any = None) -> dict[str, Any]:
    return {
        "current-context": "c",
        "contexts": [{"name": "other", "context": {}}, {"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": {"token": "secret-token"} if user is None else user}],
    }


def write(folder: Path, content: Any) -> Path:
    file = folder / "kubeconfig"
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return file


def test_a_token_in_the_kubeconfig(tmp_path: Path) -> None:
    access = read_access(
        write(tmp_path, kubeconfig(cluster={"certificate-authority-data": CA, "tls-server-name": "k8s"}))
    )
    assert (access.server, access.authority, access.token, access.tls_server_name) == (
        "https://host",
        "PEM",
        "secret-token",
        "k8s",
    )
    assert "secret-token" not in repr(access)


def test_a_token_and_an_authority_in_files(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    (tmp_path / "ca").write_text("FILE PEM")
    file = write(
        tmp_path,
        kubeconfig(
            user={"tokenFile": str(tmp_path / "token")}, cluster={"certificate-authority": str(tmp_path / "ca")}
        ),
    )
    assert (read_access(file).token, read_access(file).authority) == ("from-file", "FILE PEM")


def test_without_an_authority_the_public_ones_count(tmp_path: Path) -> None:
    assert read_access(write(tmp_path, kubeconfig())).authority is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[",
        "a: b",
        kubeconfig(user={}),
        {**kubeconfig(), "current-context": "none"},
        kubeconfig(user={"tokenFile": "/no"}),
        "[" * 4000,
        "".join(f"{' ' * depth}a:\n" for depth in range(3000)),
    ],
)
def test_what_cannot_be_used_says_so_without_any_secret(tmp_path: Path, content: Any) -> None:
    with pytest.raises(AccessError, match=r"kubeconfig: .*; (give|correct it|name one)") as caught:
        read_access(write(tmp_path, content))
    assert "secret-token" not in str(caught.value)


def test_outside_of_a_pod_there_is_no_account() -> None:
    with pytest.raises(AccessError, match="the account of the pod cannot be used"):
        read_access(None, {})


ANSWERS: dict[str, Any] = {
    "/api/v1/namespaces": {
        "metadata": {"resourceVersion": "77"},
        "items": [{"metadata": {"uid": "uid-of-kube-system"}}],
    },
}
ENDS: dict[str, Any] = {
    "/gone": {"code": 410, "reason": "Expired", "message": "old"},
    "/future": {"code": 504, "reason": "Timeout", "message": "Too large resource version: 9, current: 7"},
}
"""How watches of these paths end."""


class Server:
    """A server that knows one token."""

    def __init__(self) -> None:
        self.token = "old"
        self.url = ""
        self.seen: list[tuple[str, str, str]] = []
        self.more = asyncio.Event()
        self.busy = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.method, request.path_qs, request.headers.get("Content-Type", "")))
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"reason": "Unauthorized", "message": "who are you"}, status=401)
        if request.path == "/busy":
            self.busy -= 1
            if self.busy >= 0:
                return web.json_response({"message": "slow down"}, status=429, headers={"Retry-After": "1"})
        if request.path == "/silent":
            await self.more.wait()
        if "watch" in request.query:
            return await self.watch(request)
        if request.path == "/broken":
            return web.Response(status=500, text="<html>")
        if request.path == "/missing":
            return web.json_response({"reason": "NotFound", "message": "no such thing"}, status=404)
        return web.json_response(ANSWERS.get(request.path, {"ok": True}))

    async def watch(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for line in (b'{"type":"ADDED","object":{"n":1}}\n{"type":"BOOKM', b'ARK","object":{"n":2}}\n'):
            await answer.write(line)
            await asyncio.sleep(0)
        if request.path == "/long":
            await self.more.wait()
            await answer.write(b'{"type":"ADDED","object":{"n":3}}\n')
        if request.path in ENDS:
            await answer.write(json.dumps({"type": "ERROR", "object": ENDS[request.path]}).encode() + b"\n")
        return answer


PLUGIN = """#!/bin/sh
echo asked >> "$(dirname "$0")/asked"
echo "$KUBERNETES_EXEC_INFO" > "$(dirname "$0")/info"
cat "$(dirname "$0")/answer"
echo "$NOTE no account" >&2
exit "$(cat "$(dirname "$0")/code")"
"""
VERSION = "client.authentication.k8s.io/v1"


def exec_user(**changes: Any) -> dict[str, Any]:
    section = {"command": "./plugins/plugin", "apiVersion": VERSION, "interactiveMode": "Never"}
    return {"exec": {**section, "env": [{"name": "NOTE", "value": "Google says:"}], **changes}}


def write_plugin(folder: Path, token: str = "old", expires: str | None = None, code: int = 0, **changes: Any) -> Path:
    plugins = folder / "plugins"
    plugins.mkdir(exist_ok=True)
    status = {"token": token, **({"expirationTimestamp": expires} if expires else {})}
    answer = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status, **changes}
    for name, text in (("answer", json.dumps(answer)), ("code", str(code)), ("plugin", PLUGIN)):
        (plugins / name).write_text(text)
    (plugins / "plugin").chmod(0o755)
    return plugins


def times_asked(plugins: Path) -> int:
    return len((plugins / "asked").read_text().splitlines())


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[Server, KubeApi]]:
    server = Server()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    server.url = f"http://127.0.0.1:{port}"
    api = KubeApi(write(folder, kubeconfig(server.url, user={"token": "old"})))
    try:
        yield server, api
    finally:
        await api.close()
        await runner.cleanup()


async def test_requests(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, api):
        assert await api.get("/list", {"limit": "5"}) == {"ok": True}
        await api.apply("/thing/status", {"a": 1}, "me")
        await api.create("/things", {"a": 1})
        await api.replace("/thing", {"a": 1})
    assert [(method, path) for method, path, _ in server.seen] == [
        ("GET", "/list?limit=5"),
        ("PATCH", "/thing/status?fieldManager=me&force=true"),
        ("POST", "/things"),
        ("PUT", "/thing"),
    ]
    assert server.seen[1][2] == "application/apply-patch+yaml"


async def test_refusals_are_errors_with_the_servers_words(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, api):
        with pytest.raises(ApiError, match=r"no such thing \(404 NotFound\)") as caught:
            await api.get("/missing")
        assert caught.value.is_not_found
        with pytest.raises(ApiError, match=r"<html> \(500 \)"):
            await api.get("/broken")


async def test_a_rotated_token_is_read_again_when_the_old_one_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, api):
        await api.get("/list")
        server.token = "new"
        write(tmp_path, kubeconfig(server.url, user={"token": "new"}))
        assert await api.get("/list") == {"ok": True}
        server.token = "never known"
        with pytest.raises(ApiError) as caught:
            await api.get("/list")
        assert caught.value.status == 401


async def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    api = KubeApi(write(tmp_path, kubeconfig("http://127.0.0.1:1")))
    with pytest.raises(ApiError, match="GET /list failed") as caught:
        await api.get("/list")
    assert caught.value.status == 0
    await api.close()


async def test_a_watch_gives_whole_events_and_errors_as_such(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, api):
        assert [event async for event in api.watch("/list", "5")] == [("ADDED", {"n": 1}), ("BOOKMARK", {"n": 2})]
        with pytest.raises(ApiError) as caught:
            async for _event in api.watch("/gone", "5"):
                pass
        assert caught.value.asks_for_list


async def test_a_watch_goes_on_while_another_request_is_refused_or_fails(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, api):
        events = api.watch("/long", "5")
        assert [await anext(events), await anext(events)] == [("ADDED", {"n": 1}), ("BOOKMARK", {"n": 2})]
        server.token = "new"
        with pytest.raises(ApiError, match="401"):
            await api.get("/list")
        write(tmp_path, kubeconfig(server.url, user={"token": "new"}))
        assert await api.get("/list") == {"ok": True}
        server.more.set()
        assert await asyncio.wait_for(anext(events), 10) == ("ADDED", {"n": 3})


@pytest.mark.parametrize("moved", [False, True], ids=["closed", "moved to another server"])
async def test_a_watch_of_a_connection_that_is_closed_ends_with_an_error(tmp_path: Path, moved: bool) -> None:
    async with serving(tmp_path) as (server, api):
        events = api.watch("/long", "5")
        await anext(events)
        await anext(events)
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.05)
        if moved:
            server.token = "new"
            write(tmp_path, kubeconfig(server.url.replace("127.0.0.1", "localhost"), user={"token": "new"}))
            assert await api.get("/list") == {"ok": True}
        else:
            await api.close()
        with pytest.raises(ApiError, match="watch of /long dropped"):
            await asyncio.wait_for(waiting, 10)
        server.more.set()


async def test_a_connection_that_is_cut_without_a_word_is_noticed_by_probes(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, api):
        events = api.watch("/long", "5")
        await anext(events)
        [response] = api._watches
        assert response.connection is not None
        assert response.connection.transport is not None
        connected = response.connection.transport.get_extra_info("socket")
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        probes = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        assert [connected.getsockopt(socket.IPPROTO_TCP, option) for option in probes] == [20, 5, 4]
        server.more.set()


async def test_a_watch_says_when_it_has_begun_and_not_before(tmp_path: Path) -> None:
    begun: list[str] = []
    async with serving(tmp_path) as (_, api):
        await anext(api.watch("/list", "5", lambda: begun.append("list")))
    away = KubeApi(write(tmp_path, kubeconfig("http://127.0.0.1:1")))
    with pytest.raises(ApiError):
        await anext(away.watch("/list", "5", lambda: begun.append("away")))
    await away.close()
    assert begun == ["list"]


async def test_a_version_that_is_yet_to_come_asks_for_a_list_too(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, api):
        with pytest.raises(ApiError) as caught:
            async for _event in api.watch("/future", "9"):
                pass
        assert caught.value.asks_for_list
    assert not ApiError(504, "Timeout", "context deadline exceeded").asks_for_list
    assert not ApiError(429, "TooManyRequests", "").asks_for_list


async def test_after_a_429_no_request_begins_until_the_server_wants_it(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with serving(tmp_path) as (server, api):
        server.busy = 1
        began = loop.time()
        with pytest.raises(ApiError) as caught:
            await api.get("/busy")
        assert (caught.value.status, caught.value.retry_after) == (429, 1.0)
        await asyncio.gather(*(api.get(f"/list{index}") for index in range(3)))
        assert 0.9 < loop.time() - began < 10.0
        assert len(server.seen) == 4


async def test_a_watch_that_is_never_answered_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "REQUEST_SECONDS", 0.05)
    async with serving(tmp_path) as (server, api):
        with pytest.raises(ApiError, match=r"watch of /silent got no answer within 0\.05 s") as caught:
            await anext(api.watch("/silent", "5"))
        assert caught.value.status == 0
        server.more.set()


async def test_a_watch_that_falls_silent_ends_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SILENCE_SECONDS", 0.5)
    async with serving(tmp_path) as (server, api):
        with pytest.raises(ApiError, match="watch of /long dropped"):
            async for _event in api.watch("/long", "5"):
                pass
        server.more.set()


async def test_the_identity_of_a_cluster_is_asked_twice_at_most_for_many_watches(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, api):
        result = await asyncio.gather(*(api.identity() for _ in range(9)))
        assert set(result) == {Identity("uid-of-kube-system", "77")}
        assert len(server.seen) <= 2
        assert server.seen[0][1] == "/api/v1/namespaces?fieldSelector=metadata.name%3Dkube-system"


async def test_no_watch_gets_an_identity_that_was_asked_for_before_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All Workloads were listed again, and nothing was decided meanwhile: the server seemed to have gone back."""
    answers = iter("123")

    async def answer(_: object) -> Identity:
        return Identity("uid", next(answers))

    monkeypatch.setattr(client, "ask_identity", answer)
    api = KubeApi(write(tmp_path, kubeconfig()))
    assert [(await api.identity()).version for _ in range(3)] == ["1", "2", "3"]
    await api.close()


async def test_a_token_of_a_plugin_is_used_until_the_server_refuses_it(tmp_path: Path) -> None:
    plugins = write_plugin(tmp_path)
    async with serving(tmp_path) as (server, api):
        write(tmp_path, kubeconfig(server.url, user=exec_user(provideClusterInfo=True)))
        await asyncio.gather(*(api.get(f"/list{index}") for index in range(5)))
        assert times_asked(plugins) == 1
        told = json.loads((plugins / "info").read_text())
        assert told == {
            "apiVersion": VERSION,
            "kind": "ExecCredential",
            "spec": {"interactive": False, "cluster": {"server": server.url}},
        }
        server.token = "new"
        write_plugin(tmp_path, "new")
        await asyncio.gather(*(api.get(f"/list{index}") for index in range(5)))
        assert times_asked(plugins) == 2
        with pytest.raises(ApiError, match="no such thing"):
            await api.get("/missing")
        assert times_asked(plugins) == 2


async def test_a_plugin_is_asked_again_before_its_token_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def asked_later(api: KubeApi, seconds: float) -> int:
        clock = SimpleNamespace(monotonic=lambda: begun + seconds, time=time.time)
        monkeypatch.setattr("kueue_fleet.kube.client.time", clock)
        await api.get("/list")
        monkeypatch.undo()
        return times_asked(plugins)

    begun = time.monotonic()
    plugins = write_plugin(tmp_path, expires=datetime.fromtimestamp(time.time() + 1800, UTC).isoformat())
    async with serving(tmp_path) as (server, api):
        write(tmp_path, kubeconfig(server.url, user=exec_user()))
        assert [await asked_later(api, seconds) for seconds in (0, 60, 27 * 60, 28 * 60, 28 * 60)] == [1, 1, 1, 2, 2]
        # A plugin that fails: the token that is known may still do.
        write_plugin(tmp_path, "unused", code=1)
        assert await asked_later(api, 60 * 60) == 3


@pytest.mark.parametrize(
    ("section", "plugin", "said"),
    [
        ({"command": "no-such-plugin"}, {}, "no-such-plugin cannot be run: No such file or directory; install it"),
        ({}, {"code": 3}, "plugin failed with exit code 3: Google says: no account"),
        ({}, {"apiVersion": "v0"}, f"plugin answered in v0, but the kubeconfig has {VERSION}; make them equal"),
        ({}, {"token": ""}, "plugin gave neither a token nor a certificate with its key; check the command"),
        ({}, {"status": 5}, "plugin printed no ExecCredential; check the command"),
        ({}, {"expires": "soon"}, "plugin printed no ExecCredential; check the command"),
        ({"apiVersion": "v1"}, {}, f"apiVersion v1 of ./plugins/plugin is unknown; use {VERSION} or {VERSION}beta1"),
        ({"interactiveMode": "Always"}, {}, "needs a terminal (interactiveMode: Always)"),
        ({"interactiveMode": "Ask"}, {}, "exec.interactiveMode: Ask is unknown; use Never, IfAvailable, Always"),
        ({"env": [{"name": "A"}]}, {}, "exec.env: is not a list of names and values"),
        ({"command": "no-such-plugin", "installHint": "Ask\n  IT"}, {}, "No such file or directory; Ask IT"),
        ({"args": 5}, {}, "users[u].user.exec.args: is not a list of texts; correct it"),
    ],
)
async def test_a_plugin_that_gives_no_token(tmp_path: Path, section: Any, plugin: Any, said: str) -> None:
    write_plugin(tmp_path, **{"token": "hidden-token", **plugin})
    api = KubeApi(write(tmp_path, kubeconfig("http://127.0.0.1:1", user=exec_user(**section))))
    with pytest.raises(ApiError) as caught:
        await api.get("/list")
    assert said in str(caught.value)
    assert "hidden-token" not in str(caught.value)
    await api.close()


async def test_a_plugin_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_plugin, "EXEC_SECONDS", 0.2)
    api = KubeApi(write(tmp_path, kubeconfig(user=exec_user(command="sleep", args=["60"]))))
    with pytest.raises(ApiError, match=r"sleep gave no answer within 0\.2 s"):
        await api.get("/list")
    assert "sleep" not in [child.name() for child in psutil.Process().children()]
    await api.close()


async def test_a_connection_keeps_no_more_than_a_record_of_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller keeps nine connections to each of a hundred workers."""
    monkeypatch.setattr(SSLProtocol, "max_size", SSLProtocol.max_size)
    client.read_by_record()
    now = datetime.fromtimestamp(time.time(), UTC)
    authority = RehearsalAuthority.open(tmp_path, now)
    pair = authority.server("api", ["localhost"], now)
    own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    own.load_cert_chain(pair.certificate, pair.key)

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(bytes(1_000_000))
        writer.close()

    async with await asyncio.start_server(answer, "localhost", 0, ssl=own) as server:
        port = server.sockets[0].getsockname()[1]
        trusted = ssl.create_default_context(cafile=authority.certificate_file)
        reader, writer = await asyncio.open_connection("localhost", port, ssl=trusted)
        kept: Any = writer.transport
        assert len(kept._ssl_protocol.get_buffer(-1)) == 16 * 1024
        assert await reader.read() == bytes(1_000_000)
        writer.close()


@pytest.mark.parametrize("own_authority", [False, True])
async def test_the_authorities_of_the_system_are_read_once_for_all_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_authority: bool
) -> None:
    """With a hundred workers a new leader did nothing else for so long that it lost its Lease."""
    now = datetime.fromtimestamp(time.time(), UTC)
    authority = Path(RehearsalAuthority.open(tmp_path, now).certificate_file).read_bytes()
    cluster = {"certificate-authority-data": base64.b64encode(authority).decode()} if own_authority else {}
    access_module._authorities_of_the_system.cache_clear()
    read: list[ssl.SSLContext] = []
    load = ssl.SSLContext.load_default_certs

    def count(context: ssl.SSLContext, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
        read.append(context)
        load(context, purpose)

    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", count)
    for number in range(5):
        (tmp_path / str(number)).mkdir()
        api = KubeApi(write(tmp_path / str(number), kubeconfig(f"https://host-{number}", cluster=cluster)))
        await api.connect()
        await api.close()
    assert len(read) == (0 if own_authority else 1)
