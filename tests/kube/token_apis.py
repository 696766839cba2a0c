"""A manager with a worker's kubeconfig in a Secret, and a worker that answers TokenRequests, in memory."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

from kueue_fleet.kube.answers import ApiError, Json
from kueue_fleet.settings.tokens import WorkerToken

PLACE = WorkerToken(
    worker="worker-a",
    account="multikueue-manager",
    account_namespace="kueue-system",
    first_secret="multikueue-manager-2026-11",
    secret_namespace="kueue-system",
    secret="worker-a-2026-11",
)
SECRET_PATH = "/api/v1/namespaces/kueue-system/secrets/worker-a-2026-11"
FIRST_SECRET_PATH = "/api/v1/namespaces/kueue-system/secrets/multikueue-manager-2026-11"
TOKEN_PATH = "/api/v1/namespaces/kueue-system/serviceaccounts/multikueue-manager/token"


def jwt(**claims: Any) -> str:
    """A token with these claims and no valid signature."""
    parts = ({"alg": "RS256"}, {"sub": "system:serviceaccount:kueue-system:multikueue-manager", **claims})
    return ".".join([*(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts), "sig"])


FIRST_TOKEN = jwt()


def kubeconfig(token: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "worker-a", "cluster": {"server": "https://worker-a"}}],
        "users": [{"name": "multikueue-manager", "user": {"token": token}}],
        "contexts": [{"name": "worker-a", "context": {"cluster": "worker-a", "user": "multikueue-manager"}}],
        "current-context": "worker-a",
    }


def secret(token: str) -> Json:
    encoded = base64.b64encode(json.dumps(kubeconfig(token)).encode()).decode()
    return {"metadata": {"name": "worker-a-2026-11"}, "data": {"kubeconfig": encoded}}


@dataclass
class TokenManager:
    """Objects by path; they are changed by server-side apply, whole maps at a time."""

    objects: dict[str, Json] = field(default_factory=lambda: {SECRET_PATH: secret(FIRST_TOKEN)})
    applied: list[tuple[str, str]] = field(default_factory=list)

    async def get(self, path: str) -> Json:
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"{path} not found")
        return self.objects[path]

    async def apply(self, path: str, body: Json, manager: str) -> Json:
        assert body["metadata"]["name"] == path.rpartition("/")[2]
        self.applied.append((path, manager))
        self.objects[path] = body
        return body

    async def create(self, path: str, body: Json) -> Json:
        raise ApiError(403, "Forbidden", f"create {path} {body['kind']}")

    async def delete(self, path: str) -> Json:
        raise ApiError(403, "Forbidden", f"delete {path}")

    @property
    def token(self) -> str:
        """The token in the Secret."""
        text = base64.b64decode(self.objects[SECRET_PATH]["data"]["kubeconfig"])
        return str(json.loads(text)["users"][0]["user"]["token"])


@dataclass
class TokenWorker:
    """Makes tokens that are issued at `now` and live as long as is asked, at most `longest` seconds."""

    now: float
    longest: float = float("inf")
    secrets: set[str] = field(default_factory=lambda: {FIRST_SECRET_PATH})
    down: bool = False
    issued: int = 0

    async def create(self, path: str, body: Json) -> Json:
        self._answer()
        if path != TOKEN_PATH:
            raise ApiError(403, "Forbidden", path)
        assert (body["apiVersion"], body["kind"]) == ("authentication.k8s.io/v1", "TokenRequest")
        self.issued += 1
        life = min(body["spec"]["expirationSeconds"], self.longest)
        return {"status": {"token": jwt(iat=self.now, exp=self.now + life, jti=self.issued)}}

    async def delete(self, path: str) -> Json:
        self._answer()
        if path not in self.secrets:
            raise ApiError(404, "NotFound", f"{path} not found")
        self.secrets.remove(path)
        return {"kind": "Status", "status": "Success"}

    async def get(self, path: str) -> Json:
        raise ApiError(403, "Forbidden", path)

    async def apply(self, path: str, body: Json, manager: str) -> Json:
        raise ApiError(403, "Forbidden", f"{path} {manager} {body['kind']}")

    def _answer(self) -> None:
        if self.down:
            raise ApiError(0, "", "no answer")
