# The fleet's controller: `kueue-fleet controller` and nothing else. Neither Pulumi nor any build tool is in the result,
# nor a shell, nor pip.
#
#   docker build -t REGISTRY/kueue-fleet/controller:0.1.0 .        (or podman build, or buildah bud)
#
# Both stages have Python 3.11 on Debian 12, so that compiled wheels fit. The bases are pinned by the digest of their
# index of platforms. For a newer one, or one from a mirror: --build-arg RESULT_BASE=MIRROR/python3-debian12@sha256:...
ARG BUILD_BASE=docker.io/library/python:3.11.13-slim-bookworm@sha256:86adf8dbadc3d6e82ee5dd2c74bec2e1c2467cdad47886280501df722372d2e1
ARG RESULT_BASE=gcr.io/distroless/python3-debian12:nonroot@sha256:7d1042ce588ab97019fe95c24ffca7bc5a82ccdac572511d5e09bda4435c89c5
FROM ${BUILD_BASE} AS build
WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
COPY requirements-controller.lock ./
RUN pip install --require-hashes --no-deps --only-binary=:all: --target=/app -r requirements-controller.lock
COPY components/kueue_fleet/__init__.py components/kueue_fleet/py.typed /app/kueue_fleet/
COPY components/kueue_fleet/gke /app/kueue_fleet/gke
COPY components/kueue_fleet/kueue_api /app/kueue_fleet/kueue_api
COPY components/kueue_fleet/fleet_file /app/kueue_fleet/fleet_file
COPY components/kueue_fleet/objects /app/kueue_fleet/objects
COPY components/kueue_fleet/admission /app/kueue_fleet/admission
COPY components/kueue_fleet/dispatch /app/kueue_fleet/dispatch
COPY components/kueue_fleet/kube /app/kueue_fleet/kube
COPY components/kueue_fleet/controller /app/kueue_fleet/controller
# Compiled ahead: the root file system is read-only when it runs. And proof that what was copied is enough.
RUN python -m compileall -q /app && PYTHONPATH=/app python -m kueue_fleet.controller --help

FROM ${RESULT_BASE}
COPY --from=build --chown=0:0 /app /app
ENV PYTHONPATH=/app PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["python3", "-m", "kueue_fleet.controller"]
