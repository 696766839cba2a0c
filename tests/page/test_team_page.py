"""The page for teams: who gets an answer, with whose rights it reads, and what is never in one."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from kueue_fleet.objects.fleet_page import VIEWER, PageConfiguration
from kueue_fleet.page import api_server
from kueue_fleet.page.api_server import ApiServer
from kueue_fleet.page.team_page import TeamPage
from kueue_fleet.page.viewers import IAP_HEADER, IapSignIn, SignIn, TokenSignIn

HOSTILE = "<script>document.title='owned'</script>\x1b[31m\u202e"
ADA, BOB, EVE = "ada@example.com", "bob@example.com", "eve@example.com"
AUDIENCE = "/projects/123456789/global/backendServices/42"
KEY = ec.generate_private_key(ec.SECP256R1())
MAY = {"ada": ["vision"], "bob": ["speech"], "lead": ["vision", "speech"], "nobody": []}
"""The namespaces that each token may read."""


SETTINGS = PageConfiguration.model_validate(
    {"fleet": "lab", "cluster": "manager", "namespaces": ["vision", "speech"], "teams": {"vision": "ml"}, "page": {}}
)


def workload(namespace: str, name: str) -> dict[str, Any]:
    told = f"It asks for 2 GPUs.\nNext: Wait. {HOSTILE}"
    waiting = {"type": "kueue-fleet.dev/Waiting", "status": "True", "reason": "WaitingForQuota", "message": told}
    refused = {"type": "QuotaReserved", "status": "False", "reason": "WaitingForQuota", "message": "no room"}
    at = {"lastTransitionTime": "2026-11-27T03:40:00Z"}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "controller": True, "uid": "u"}
    return {
        "metadata": {
            "namespace": namespace, "name": f"job-{name}", "creationTimestamp": "2026-11-27T03:39:00Z",
            "ownerReferences": [owner],
        },
        "spec": {"queueName": "gpu"},
        "status": {"conditions": [{**refused, **at}, {**waiting, **at}]},
    }  # fmt: skip


class Cluster:
    """An API server that knows who may read what, by token or by whom the page's account impersonates."""

    def __init__(self) -> None:
        self.asked: list[dict[str, list[str]]] = []
        self.status = 0
        self.forged = self.most_forged = 0
        self.judged = asyncio.Event()
        self.judged.set()

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append({name: request.headers.getall(name) for name in request.headers})
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token.startswith("forged"):
            self.forged += 1
            self.most_forged = max(self.most_forged, self.forged)
            await self.judged.wait()
            self.forged -= 1
        if self.status:
            return web.json_response({"reason": "Unavailable", "message": "secret of the server"}, status=self.status)
        may = MAY.get(token)
        if token == "own":
            groups = request.headers.getall("Impersonate-Group", [])
            user = request.headers["Impersonate-User"]
            may = ["vision"] * ("ml@example.com" in groups) + ["speech"] * (user == "Bob@Example.com")
        if may is None:
            return web.json_response({"reason": "Unauthorized", "message": "Unauthorized"}, status=401)
        namespace = request.match_info["namespace"]
        if namespace not in may:
            return web.json_response({"reason": "Forbidden", "message": f"no {namespace}"}, status=403)
        return web.json_response({"items": [workload(namespace, f"train-{namespace}")]})


@asynccontextmanager
async def served(folder: Path, sign_in: SignIn | None = None) -> AsyncIterator[tuple[str, Cluster]]:
    cluster = Cluster()
    application = web.Application()
    application.router.add_get("/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads", cluster.answer)
    async with TestServer(application) as server:
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": str(server.make_url(""))}}],
            "users": [{"name": "u", "user": {"token": "own"}}],
        }
        (folder / "kubeconfig").write_text(yaml.safe_dump(config))
        api = ApiServer(folder / "kubeconfig")
        page = TeamPage(SETTINGS, api, sign_in or TokenSignIn())
        async with TestServer(page.application()) as served:
            try:
                yield str(served.make_url("/")), cluster
            finally:
                await api.close()


async def get(url: str, method: str = "GET", **headers: str) -> tuple[int, str, Mapping[str, str]]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    async with aiohttp.ClientSession() as session, session.request(method, url, headers=sent) as answer:
        return answer.status, await answer.text(), answer.headers


async def names(url: str, token: str) -> list[str]:
    status, text, _ = await get(f"{url}live/jobs", Authorization=f"Bearer {token}")
    assert status == 200, text
    return [item["name"] for item in json.loads(text)["jobs"]]


async def test_each_viewer_sees_what_the_cluster_lets_their_token_read(tmp_path: Path) -> None:
    async with served(tmp_path) as (url, cluster):
        assert await names(url, "ada") == ["train-vision"]
        assert await names(url, "bob") == ["train-speech"]
        assert sorted(await names(url, "lead")) == ["train-speech", "train-vision"]
        assert {item["Authorization"][0] for item in cluster.asked} == {"Bearer ada", "Bearer bob", "Bearer lead"}


async def test_nothing_of_one_viewer_is_kept_for_another(tmp_path: Path) -> None:
    async with served(tmp_path) as (url, _):
        await names(url, "lead")
        for token in ("ada", "lead", "ada"):
            assert ("train-speech" in await names(url, token)) == (token == "lead")
        assert (await get(f"{url}live/jobs"))[0] == 401


@pytest.mark.parametrize(
    "given", ["", "Bearer ", "Basic YWRhOngK", "Bearer a b", "Bearer ada\u00e9", "bearer", "Bearer " + "x" * 7000]
)
async def test_without_a_token_nobody_is_let_in_and_nothing_is_asked(tmp_path: Path, given: str) -> None:
    async with served(tmp_path) as (url, cluster):
        for path in ("live/jobs", "live/job?namespace=vision&name=train-vision"):
            status, text, headers = await get(f"{url}{path}", **({"Authorization": given} if given else {}))
            assert status == 401
            assert "train" not in text
            assert headers["WWW-Authenticate"] == "Bearer"
        assert [item["Authorization"] for item in cluster.asked if "x" * 7000 not in item["Authorization"][0]] == []


async def test_a_token_that_the_cluster_does_not_take_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as (url, _):
        status, text, _ = await get(f"{url}live/jobs", Authorization="Bearer forged")
        assert (status, text) == (401, "the cluster does not take this token")


async def test_forged_tokens_wait_for_each_other_alone(tmp_path: Path) -> None:
    """Each costs one request, of two at once; a viewer who is known waits for none of them."""
    async with served(tmp_path) as (url, cluster):
        await names(url, "lead")
        forged = [f"Bearer forged{number}" for number in range(40)]
        cluster.judged.clear()
        many = asyncio.gather(*(get(f"{url}live/jobs", Authorization=token) for token in forged))
        while not cluster.forged:
            await asyncio.sleep(0)
        await names(url, "lead")
        cluster.judged.set()
        assert {status for status, *_ in await many} == {401}
        of_forged = [item for item in cluster.asked if item["Authorization"][0].startswith("Bearer forged")]
        assert (len(of_forged), cluster.most_forged) == (40, 2)


async def test_a_token_that_was_refused_is_not_asked_about_again_at_once(tmp_path: Path) -> None:
    async with served(tmp_path) as (url, cluster):
        for _ in range(3):
            assert (await get(f"{url}live/jobs", Authorization="Bearer forged"))[0] == 401
        assert len(cluster.asked) == 1


async def test_too_many_unknown_viewers_at_once_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_server, "_UNKNOWN_WAITING", 3)
    async with served(tmp_path) as (url, cluster):
        tokens = [f"Bearer forged{number}" for number in range(10)]
        cluster.judged.clear()
        asked = [asyncio.ensure_future(get(f"{url}live/jobs", Authorization=token)) for token in tokens]
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        cluster.judged.set()
        answers = await asyncio.gather(*asked)
        assert {status for status, *_ in answers} == {401, 429}


async def test_who_may_read_nothing_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as (url, _):
        status, text, _ = await get(f"{url}live/jobs", Authorization="Bearer nobody")
        assert (status, text) == (403, "you may read Workloads in no namespace of this fleet")


@pytest.mark.parametrize("namespace", ["speech", "kube-system", "../../../../api/v1/secrets", "vision/../speech", ""])
async def test_a_job_of_another_team_is_not_shown(tmp_path: Path, namespace: str) -> None:
    async with served(tmp_path) as (url, cluster):
        query = f"live/job?namespace={namespace}&name=train-speech"
        status, text, _ = await get(f"{url}{query}", Authorization="Bearer ada")
        assert status in (403, 404)
        assert "2026-11-27" not in text
        assert len(cluster.asked) == (namespace == "speech")


@pytest.mark.parametrize("header", ["Impersonate-User", "Impersonate-Group", "Impersonate-Extra-scopes", "Cookie"])
async def test_no_other_header_of_a_viewer_reaches_the_cluster(tmp_path: Path, header: str) -> None:
    async with served(tmp_path) as (url, cluster):
        await get(f"{url}live/jobs", **{"Authorization": "Bearer ada", header: "system:masters"})
        assert cluster.asked
        assert all(header not in item for item in cluster.asked)


async def test_why_it_waits_and_what_happened_are_shown(tmp_path: Path) -> None:
    async with served(tmp_path) as (url, _):
        [row] = json.loads((await get(f"{url}live/jobs", Authorization="Bearer ada"))[1])["jobs"]
        assert row["says"].startswith("It asks for 2 GPUs.")
        query = "live/job?namespace=vision&name=train-vision"
        text = json.loads((await get(f"{url}{query}", Authorization="Bearer ada"))[1])["text"]
        assert text.splitlines() == [
            "2026-11-27T03:39:00Z  submitted to LocalQueue gpu",
            "2026-11-27T03:40:00Z  not QuotaReserved: no room",
        ]


@pytest.mark.parametrize("path", ["", "team.js", "jobs.js", "page.css", "live/jobs", "live/job", "nothing", "healthz"])
async def test_nothing_of_others_is_loaded_and_nothing_is_kept(tmp_path: Path, path: str) -> None:
    async with served(tmp_path) as (url, _):
        _, text, headers = await get(f"{url}{path}", Authorization="Bearer ada")
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert (headers["Cache-Control"], headers["X-Content-Type-Options"]) == ("no-store", "nosniff")
        assert "Set-Cookie" not in headers
        assert not [name for name in headers if name.lower().startswith("access-control")]
        assert "://" not in text


@pytest.mark.parametrize(
    "name", ["team.html", "ui.html", "jobs.html", "viewers.py", "..%2fviewers.py", "%2e%2e/viewers.py"]
)
async def test_no_other_file_is_served(tmp_path: Path, name: str) -> None:
    async with served(tmp_path) as (url, _):
        assert (await get(f"{url}{name}"))[0] == 404


async def test_no_quota_is_tried_on_it(tmp_path: Path) -> None:
    async with served(tmp_path) as (url, cluster):
        assert (await get(f"{url}live/what-if?limit=nominalQuota", Authorization="Bearer ada"))[0] == 404
        assert "what-if" not in "".join([(await get(f"{url}{name}"))[1] for name in ("", "team.js", "jobs.js")])
        assert cluster.asked == []


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_nothing_can_be_changed(tmp_path: Path, method: str) -> None:
    async with served(tmp_path) as (url, cluster):
        for path in ("", "live/jobs", "live/job"):
            assert (await get(f"{url}{path}", method, Authorization="Bearer ada"))[0] == 405
        assert cluster.asked == []


async def test_the_files_have_nothing_of_the_fleet_in_them(tmp_path: Path) -> None:
    async with served(tmp_path) as (url, cluster):
        for name in ("", "team.js", "jobs.js", "page.css"):
            status, text, _ = await get(f"{url}{name}")
            assert status == 200
            assert not any(word in text for word in ("vision", "speech", "manager"))
        assert cluster.asked == []


async def test_what_an_api_server_says_of_itself_is_not_repeated(tmp_path: Path) -> None:
    async with served(tmp_path) as (url, cluster):
        cluster.status = 500
        status, text, _ = await get(f"{url}live/jobs", Authorization="Bearer ada")
        assert (status, text) == (502, "the API server answers 500 Unavailable")


async def test_tokens_are_in_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    async with served(tmp_path) as (url, cluster):
        await names(url, "ada")
        cluster.status = 500
        await get(f"{url}live/jobs", Authorization="Bearer ada")
    assert "not read" in caplog.text
    assert "Bearer" not in caplog.text


def signed(header: Mapping[str, Any] | None = None, key: ec.EllipticCurvePrivateKey = KEY, **claims: Any) -> str:
    """IAP's header for Ada, or as it is given."""
    now = int(time.time())
    usual = {"iss": "https://cloud.google.com/iap", "aud": AUDIENCE, "email": ADA, "iat": now - 1, "exp": now + 300}
    parts = [{"alg": "ES256", "kid": "k1", "typ": "JWT", **(header or {})}, {**usual, **claims}]
    text = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    r, s = utils.decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    signature = base64.urlsafe_b64encode(r.to_bytes(32) + s.to_bytes(32)).decode().rstrip("=")
    return f"{text}.{signature}"


@asynccontextmanager
async def behind_iap(folder: Path, audience: str = AUDIENCE) -> AsyncIterator[tuple[str, Cluster]]:
    public = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    async def keys(_: web.Request) -> web.Response:
        return web.json_response({"k1": public.decode()})

    application = web.Application()
    application.router.add_get("/keys", keys)
    async with TestServer(application) as server:
        groups = {"ml@example.com": [ADA]}
        sign_in = IapSignIn(audience, ["Bob@Example.com"], groups, str(server.make_url("/keys")))
        async with served(folder, sign_in) as result:
            yield result


async def test_behind_iap_members_of_groups_and_users_are_impersonated(tmp_path: Path) -> None:
    async with behind_iap(tmp_path) as (url, cluster):
        for user, job in ((ADA, "train-vision"), (BOB, "train-speech"), ("Ada@Example.com", "train-vision")):
            status, text, _ = await get(f"{url}live/jobs", **{IAP_HEADER: signed(email=user)})
            assert (status, [entry["name"] for entry in json.loads(text)["jobs"]]) == (200, [job])
        users = {(item["Impersonate-User"][0], *item.get("Impersonate-Group", [])) for item in cluster.asked}
        assert users == {(VIEWER, "ml@example.com"), ("Bob@Example.com",)}
        assert {each["Authorization"][0] for each in cluster.asked} == {"Bearer own"}


now = int(time.time())
OTHER_KEY = ec.generate_private_key(ec.SECP256R1())


@pytest.mark.parametrize(
    "assertion",
    [
        "", "x", "a.b.c",
        signed(aud="/projects/123456789/global/backendServices/43"),
        signed(aud=[]), signed(aud=None),
        signed(iss="https://evil.example"),
        signed(exp=now - 60, iat=now - 600), signed(iat=now + 86400, exp=now + 86700),
        signed(email=None), signed(email=[ADA]),
        signed({"kid": "k2"}), signed({"kid": None}), signed({"alg": "none"}), signed({"alg": "HS256"}),
        signed({"alg": "RS256"}),
        signed(key=OTHER_KEY),
        signed()[:-4] + "AAAA",
        signed().rpartition(".")[0] + ".",
        signed({"alg": "none"}).rpartition(".")[0] + ".",
    ],
)  # fmt: skip
async def test_what_iap_has_not_signed_for_this_page_is_refused(tmp_path: Path, assertion: str) -> None:
    async with behind_iap(tmp_path) as (url, cluster):
        for path in ("", "team.js", "live/jobs", "live/job?namespace=vision&name=train-vision"):
            status, text, headers = await get(f"{url}{path}", **{IAP_HEADER: assertion})
            assert status == 401
            assert "train" not in text
            assert "WWW-Authenticate" not in headers
        assert cluster.asked == []


async def test_behind_iap_a_token_or_an_unsigned_name_lets_nobody_in(tmp_path: Path) -> None:
    async with behind_iap(tmp_path) as (url, cluster):
        given = {"Authorization": "Bearer ada", "X-Goog-Authenticated-User-Email": f"accounts.google.com:{ADA}"}
        assert (await get(f"{url}live/jobs", **given))[0] == 401
        assert cluster.asked == []


async def test_who_is_in_no_team_is_refused(tmp_path: Path) -> None:
    async with behind_iap(tmp_path) as (url, cluster):
        status, text, _ = await get(f"{url}live/jobs", **{IAP_HEADER: signed(email=EVE)})
        assert (status, text) == (403, "you are a member of no team of this fleet")
        assert cluster.asked == []


async def test_without_an_audience_nobody_is_let_in_and_it_is_healthy(tmp_path: Path) -> None:
    async with behind_iap(tmp_path, "") as (url, _):
        for path in ("", "live/jobs"):
            assert (await get(f"{url}{path}", **{IAP_HEADER: signed(aud="")}))[0] == 403
        assert (await get(f"{url}healthz"))[:2] == (200, "ok")
