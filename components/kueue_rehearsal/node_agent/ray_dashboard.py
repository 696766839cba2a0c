"""What KubeRay asks the dashboards of Ray's heads, which are simulated pods: how a job that was submitted stands.

KubeRay reaches them as an HTTP client, with this server as its proxy. The answer is that of the pod that
submits, which waits for the job and ends as it does. Anything else is not answered, as by a head that does not run:
jobs that KubeRay submits itself, and what RayServices serve.
"""

from __future__ import annotations

import asyncio
import logging
import re
from datetime import datetime
from typing import Any

from aiohttp import web

from kueue_fleet.kube.answers import ApiError, Json
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi

log = logging.getLogger(__name__)

# No registered service, and below the ephemeral ports of Linux (32768).
PORT = 29418
"""Where KubeRay asks."""
_JOB = re.compile(r"/api/jobs/([^/]+)")
_HEAD = re.compile(r"[^.]+\.([^.]+)\.svc\..*")


class RayDashboards:
    """The proxy of one cluster's KubeRay, on `ip`."""

    def __init__(self, api: ControlPlaneApi, ip: str) -> None:
        self._api = api
        self._ip = ip

    async def run(self) -> None:
        """Answers until cancelled."""
        runner = web.ServerRunner(web.Server(self._answer))
        await runner.setup()
        try:
            await web.TCPSite(runner, self._ip, PORT).start()
            await asyncio.Event().wait()
        except OSError as error:
            log.warning("%s:%d: RayJobs will fail, nothing answers KubeRay: %s", self._ip, PORT, error.strerror)
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        head, path = _HEAD.fullmatch(request.host), _JOB.fullmatch(request.path)
        if head is None or path is None or request.method != "GET":
            return web.Response(status=503, text=f"{request.method} {request.path}: Ray does not run in a rehearsal")
        try:
            job = await self._job(head[1], path[1])
        except ApiError as error:
            return web.Response(status=503, text=str(error))
        return web.Response(status=404, text=f"Job {path[1]} does not exist") if job is None else web.json_response(job)

    async def _job(self, namespace: str, submission: str) -> Json | None:
        """What Ray's dashboard says of a job; None before it is submitted. Raises ApiError."""
        ray_jobs = await self._api.get(f"/apis/ray.io/v1/namespaces/{namespace}/rayjobs")
        for ray_job in ray_jobs["items"]:
            if (ray_job.get("status") or {}).get("jobId") == submission:
                name = ray_job["metadata"]["name"]
                submitter = await self._api.find(f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}")
                return submitter and job_details(submission, ray_job["spec"].get("entrypoint", ""), submitter)
        return None


def job_details(submission: str, entrypoint: str, submitter: Json) -> Json | None:
    """Ray's JobDetails for a job whose pod that submits is that of the Job; None before the pod runs."""
    status: dict[str, Any] = submitter.get("status") or {}
    if status.get("succeeded"):
        state, message = "SUCCEEDED", "Job finished successfully."
    elif status.get("failed"):
        state, message = "FAILED", "Job entrypoint command failed, as the pod that submitted it."
    elif status.get("ready"):
        state, message = "RUNNING", "Job is currently running."
    else:
        return None
    times = {"start_time": status.get("startTime"), "end_time": status.get("completionTime")}
    return {
        "type": "SUBMISSION",
        "submission_id": submission,
        "status": state,
        "entrypoint": entrypoint,
        "message": message,
        **{name: int(datetime.fromisoformat(time).timestamp() * 1000) for name, time in times.items() if time},
    }
