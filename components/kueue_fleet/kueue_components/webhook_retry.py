"""Retrying what failed only because Kueue's webhook server could not be reached.

An error hook that waits and lets Pulumi try again while the cause is temporary, as in the seconds between Kueue
being Ready and its Service having endpoints, or while its certificates are being written. A webhook that answers, and
refuses, is final.
"""

import re
import weakref
from asyncio import sleep

import pulumi
from pulumi.runtime.settings import get_monitor, get_root_resource

HOOK_NAME = "kueue-fleet/webhook-retry"
"""Name of the hook; one of a name can be registered in a program."""
RETRY_DELAYS_SECONDS: tuple[float, ...] = (1, 2, 4, 8, 8, 8, 8, 8, 8, 8, 8, 8)
"""Pause before each further try, about 80 seconds in all: Kueue replaces its certificates and restarts within that."""

_CALL_FAILED = re.compile(r"failed calling webhook|conversion webhook for .* failed|webhook-service")
_TEMPORARY = re.compile(
    r"no endpoints available|connection refused|connection reset|no such host|not found"
    r"|context deadline exceeded|i/o timeout|TLS handshake timeout|Client\.Timeout|\bEOF\b"
    r"|x509: |certificate signed by unknown authority|service unavailable|currently unable to handle",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"denied the request", re.IGNORECASE)
_IMMUTABLE = re.compile(r"\bimmutable\b", re.IGNORECASE)

_bindings: "weakref.WeakKeyDictionary[object, pulumi.ResourceHookBinding]" = weakref.WeakKeyDictionary()


def webhook_not_ready(error: str) -> bool:
    """Whether `error` says that a webhook could not be reached, as opposed to having refused the object."""
    return bool(_CALL_FAILED.search(error) and _TEMPORARY.search(error) and not _REFUSED.search(error))


async def retry_while_webhook_not_ready(args: pulumi.ErrorHookArgs) -> bool:
    """Wait and answer True while the newest error is temporary and tries are left; answer False otherwise."""
    newest = args.errors[0] if args.errors else ""
    if not webhook_not_ready(newest):
        if _IMMUTABLE.search(newest):
            pulumi.log.error(
                f"{args.name}: Kueue does not let this field change. Give the object a new name: queues then move to "
                "it, and the old one is deleted once nothing uses it."
            )
        return False
    tries = len(args.errors)
    if tries > len(RETRY_DELAYS_SECONDS):
        return False
    delay = RETRY_DELAYS_SECONDS[tries - 1]
    pulumi.log.info(f"{args.name}: Kueue's webhook is not reachable yet; trying again in {delay:g} s")
    await sleep(delay)
    return True


def webhook_retry(component_type: str, name: str) -> pulumi.ResourceHookBinding:
    """The hook, registered once for each run of a program.

    A hook's name must be unique in a deployment and should not change between runs, since it is kept in the state. A
    program has one; components made in a plugin process, where there is no stack, have one for each root component.

    Raises:
        RuntimeError: there is no Pulumi program.
    """
    monitor = get_monitor()
    if monitor is None:
        raise RuntimeError("a Pulumi component was created outside of a Pulumi program")
    binding = _bindings.get(monitor)
    if binding is None:
        hook_name = HOOK_NAME if get_root_resource() else f"{HOOK_NAME}/{component_type}/{name}"
        hook = pulumi.ErrorHook(hook_name, retry_while_webhook_not_ready)
        binding = _bindings[monitor] = pulumi.ResourceHookBinding(on_error=[hook])
    return binding
