"""The stand-in of the Google Cloud provider, in process: what it says to resources, without an engine.

`run(program)` is `pulumi_mocks.run` with Google's own answers for outputs; `refusals` and `second_plan` say what the
provider refuses, and what another `pulumi up` of the same program would change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pulumi.runtime import mocks

import pulumi_mocks
from kueue_fleet import testing
from kueue_fleet.google.plan import planned_changes, updated_state
from kueue_fleet.google.property_paths import is_within, parse_pattern, render_path
from kueue_fleet.google.resource_kinds import kind_of
from kueue_rehearsal.standins.gcp_checks import check_inputs
from kueue_rehearsal.standins.gcp_resources import answered, completed
from kueue_rehearsal.standins.property_values import reveal
from pulumi_mocks import Recorded, Recording

WHERE = {"project": "my-project", "region": "europe-west4", "zone": "europe-west4-a"}
"""Where the provider works."""
CONTROL_PLANE = {
    "endpoint": "192.0.2.10",
    "caCertificate": testing.CA_CERTIFICATE,
    "version": "1.36.3-gke.1",
    "selfLink": "https://container.googleapis.com/v1/projects/p/locations/l/clusters/c",
    "dnsEndpoint": "gke-1.europe-west4.gke.goog",
}
"""What a cluster's answer is made of."""


def resource_id(token: str, inputs: Mapping[str, Any]) -> str:
    """The id that Google gives to what is made of `inputs`."""
    return kind_of(token).resource_id(completed(token, dict(inputs), WHERE))


def answer(token: str, given: Mapping[str, Any], id_: str) -> dict[str, Any]:
    """The state after `given` was asked for."""
    plain: dict[str, Any] = reveal(answered(token, given, id_, CONTROL_PLANE))
    return plain


def created(token: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The state after the resource was made. The inputs have to be complete: nothing of them may be refused."""
    complete = completed(token, dict(inputs), WHERE)
    problems = check_inputs(token, complete)
    assert not problems, problems
    return answer(token, updated_state(token, {}, complete), resource_id(token, inputs))


def updated(token: str, state: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The state after an update in place."""
    given = updated_state(token, state, completed(token, dict(inputs), WHERE))
    return answer(token, given, resource_id(token, inputs))


def changes(
    token: str, state: Mapping[str, Any], inputs: Mapping[str, Any], ignored: Iterable[str] = ()
) -> dict[str, str]:
    """What an update to `inputs` would change, by path: `ADD`, `UPDATE_REPLACE` and so on."""
    plan = planned_changes(token, state, completed(token, dict(inputs), WHERE), ignored)
    return {render_path(path): change.name for path, change in plan.items()}


def planned(resource: Recorded, state: Mapping[str, Any]) -> dict[str, str]:
    """What an update to `resource` would change of the state, with what its options say about changes."""
    replacing = [parse_pattern(text) for text in resource.replace_on_changes]
    inputs = completed(resource.type, dict(resource.inputs), WHERE)
    plan = planned_changes(resource.type, state, inputs, resource.ignore_changes)
    return {
        render_path(path): (change.as_replacing() if any(is_within(path, item) for item in replacing) else change).name
        for path, change in plan.items()
    }


def second_plan(resource: Recorded) -> dict[str, str]:
    """What another `pulumi up` of the same program would change."""
    state = created(resource.type, resource.inputs)
    return planned(resource, state)


def differences(recording: Recording) -> dict[str, dict[str, str]]:
    """What another `pulumi up` would change of all of Google's resources; fails where one is refused."""
    plans = {resource.short: second_plan(resource) for resource in recording if resource.type.startswith("gcp:")}
    return {name: plan for name, plan in plans.items() if plan}


class GoogleMocks(testing.Mocks):
    """Google's outputs as the stand-in makes them."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        if not args.typ.startswith("gcp:") or args.resource_id:
            return super().new_resource(args)
        return resource_id(args.typ, args.inputs), created(args.typ, args.inputs)


def run(program: Callable[[], Any], *, config: Mapping[str, Any] | None = None) -> Recording:
    """Like `pulumi_mocks.run`, with Google's answers; fails where a resource is refused."""
    return pulumi_mocks.run(program, config=config, outputs=GoogleMocks())
