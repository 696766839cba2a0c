"""The tokens by which the workers are reached: where each is kept, and what it is a token of."""

from typing import Final

from kueue_admission.kernel.base import SpecModel, Text

CONTROLLER_NAME: Final = "kueue-fleet-controller"
"""Name of the controller's objects on the manager, and of its account on each worker."""


KUBECONFIG_KEY: Final = "kubeconfig"
"""Key of a Secret with a kubeconfig. Source: kueue@v0.19.2 apis/kueue/v1beta2/multikueue_types.go."""


class WorkerToken(SpecModel):
    """A token of one account of one worker."""

    worker: Text
    """The worker."""
    account: Text
    """The ServiceAccount there."""
    account_namespace: Text
    """Namespace of the account and of the Secret of its first token, on the worker."""
    first_secret: Text
    """The Secret on the worker for which Kubernetes made the first token."""
    secret_namespace: Text
    """Namespace of the Secret on the manager."""
    secret: Text
    """The Secret on the manager: a kubeconfig with the token."""
