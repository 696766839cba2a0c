"""How the manager reaches the workers: tokens, where each is kept and what it is a token of; or Google accounts.

The first token of an account is made by Kubernetes, for a Secret on the worker, and never expires; `pulumi up` carries
it to the manager. It is replaced by tokens that expire, and its Secret is deleted, by the fleet's own controller or by
`kueue-fleet rotate`.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from kueue_admission.api.manifests import token_secret_manifest
from kueue_admission.api.resources import DEPLOYMENT
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file.model.accounts import account_address, manager_account_id
from kueue_fleet.fleet_file.model.clusters import ClusterProfile, ServiceAccountToken
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.settings.tokens import CONTROLLER_NAME, WorkerToken

ACCOUNT_NAME: Final = "multikueue-manager"
"""Name of the ServiceAccount of the manager's Kueue on each worker, and of the role and binding by which it reads."""
ROTATE_BY_ANNOTATION: Final = "kueue-fleet.dev/rotate-by"
"""On the Secret of a first token: the day by which it has to be replaced, or who replaces it by itself."""
ROTATE_WITHIN: Final = timedelta(days=366)
"""How far away that day may be."""
KUEUE_SERVICE_ACCOUNT: Final = DEPLOYMENT
"""Name of Kueue's own account too. Source: kueue@v0.19.2 charts/kueue/templates/rbac/service_account.yaml."""


def token_credentials(fleet: FleetSpec) -> ServiceAccountToken | None:
    """The section `multiKueue.credentials`, where credentials are tokens."""
    credentials = fleet.multi_kueue.credentials if fleet.multi_kueue is not None else None
    return credentials if isinstance(credentials, ServiceAccountToken) else None


def profile_credentials(fleet: FleetSpec) -> ClusterProfile | None:
    """The section `multiKueue.credentials`, where the workers are reached by ClusterProfiles."""
    credentials = fleet.multi_kueue.credentials if fleet.multi_kueue is not None else None
    return credentials if isinstance(credentials, ClusterProfile) else None


@dataclass(frozen=True, slots=True)
class ManagerAccount:
    """A Google service account of a pod of the manager: for the workers, for a history in a bucket, or for both."""

    name: str
    """What it is for: `multikueue-manager` or `kueue-fleet-controller`."""
    account_id: str
    address: str
    namespace: str
    """Namespace of the pod's own account on the manager."""
    service_account: str
    """The pod's own account, which acts as the Google one."""
    connects: bool = True
    """Whether it reaches the workers."""
    store: str = ""
    """gs://BUCKET/PATH, where it creates and reads objects; may be empty."""


def manager_accounts(fleet: FleetSpec) -> tuple[ManagerAccount, ...]:
    """Kueue's, then that of the fleet's own controller. Where the credentials are tokens only the second, and that only
    where its history is in a bucket."""
    connects = profile_credentials(fleet) is not None
    namespace = fleet.kueue.namespace
    kueue = _manager_account(fleet, ACCOUNT_NAME, "multikueue", namespace, KUEUE_SERVICE_ACCOUNT)
    accounts = [kueue] if connects else []
    section = fleet.controller
    store = section.history.store if section is not None and section.history is not None else None
    if section is not None and (connects or store):
        own = _manager_account(fleet, CONTROLLER_NAME, "dispatch", section.namespace, CONTROLLER_NAME)
        accounts.append(replace(own, connects=connects, store=store or ""))
    return tuple(accounts)


def manager_account(fleet: FleetSpec, name: str) -> ManagerAccount | None:
    """The account of that name; None where there is none."""
    return next((account for account in manager_accounts(fleet) if account.name == name), None)


def _manager_account(fleet: FleetSpec, name: str, prefix: str, namespace: str, service_account: str) -> ManagerAccount:
    account = manager_account_id(fleet.name, prefix)
    return ManagerAccount(name, account, account_address(account, fleet.project), namespace, service_account)


def worker_tokens(fleet: FleetSpec) -> tuple[WorkerToken, ...]:
    """Every token of the fleet: of the manager's Kueue, then of the controller. None for other kinds of credentials.

    A worker that gets no jobs any more has a token for the controller only.
    """
    workers = [cluster.name for cluster in fleet.clusters if cluster.role == "worker"]
    tokens = [_token(fleet, worker, ACCOUNT_NAME, fleet.kueue.namespace) for worker in fleet.worker_names]
    section = fleet.controller
    if section is not None:
        tokens += [_token(fleet, worker, CONTROLLER_NAME, section.namespace) for worker in workers]
    return tuple(token for token in tokens if token is not None)


def worker_token(fleet: FleetSpec, worker: str, account: str) -> WorkerToken | None:
    """The token of one account of one worker; None for other kinds of credentials."""
    section = fleet.controller
    if account == CONTROLLER_NAME and section is not None:
        return _token(fleet, worker, account, section.namespace)
    return _token(fleet, worker, account, fleet.kueue.namespace)


def first_token_manifest(fleet: FleetSpec, account: str) -> list[Manifest]:
    """The Secret on a worker for which Kubernetes makes the first token; none for other kinds of credentials."""
    credentials = token_credentials(fleet)
    return [] if credentials is None else [first_token(credentials, fleet.kueue.namespace, account)]


def first_token(credentials: ServiceAccountToken, namespace: str, account: str) -> Manifest:
    """The same of these credentials, for an account in this namespace."""
    # Where there is no day, a controller replaces it by itself.
    annotations = {ROTATE_BY_ANNOTATION: str(credentials.rotate_by or CONTROLLER_NAME)}
    return token_secret_manifest(_first_secret(credentials, account), namespace, account, **annotations)


def kubeconfig_secret_name(worker: str, rotation: str) -> str:
    """The Secret on the manager with which its Kueue reaches a worker.

    With the serial in its name, a new serial is a new Secret: what replaced the first token is left alone.
    """
    return f"{worker}-{rotation}"


def _token(fleet: FleetSpec, worker: str, account: str, secret_namespace: str) -> WorkerToken | None:
    credentials = token_credentials(fleet)
    if credentials is None:
        return None
    prefix = f"{account}-" if account == CONTROLLER_NAME else ""
    return WorkerToken(
        worker=worker,
        account=account,
        account_namespace=fleet.kueue.namespace,
        first_secret=_first_secret(credentials, account),
        secret_namespace=secret_namespace,
        secret=f"{prefix}{kubeconfig_secret_name(worker, credentials.rotation)}",
    )


def _first_secret(credentials: ServiceAccountToken, account: str) -> str:
    return f"{account}-{credentials.rotation}"
