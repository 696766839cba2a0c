"""The tables of Kueue's releases: what they are read from, and what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kueue_admission.api.job_kinds import KINDS
from kueue_admission.releases import DEFAULT_VERSION, UnknownReleaseError, minors, nearest, release
from tests.releases.tables import Table, changes, defaults, gates, rows

PAGE = Path(__file__).parents[2] / "docs" / "releases.md"
GATES = """
const (
	Old featuregate.Feature = "OldGate"
	New featuregate.Feature = "New"
)

var defaultFeatureGateDependencies = map[featuregate.Feature][]featuregate.Feature{
	New: {Old},
}

var defaultVersionedFeatureGates = map[featuregate.Feature]featuregate.VersionedSpecs{
	Old: {
		{Version: version.MustParse("0.4"), Default: false, PreRelease: featuregate.Alpha},
		{Version: version.MustParse("0.5"), Default: true, PreRelease: featuregate.GA, LockToDefault: true}, // remove
	},
	New: {
		{Version: version.MustParse("0.20"), Default: false, PreRelease: featuregate.Alpha},
	},
}
"""


def test_a_gate_has_what_the_last_of_its_specs_says(tmp_path: Path) -> None:
    for name, text in {"features/kube_features.go": GATES, "config/validation.go": ""}.items():
        file = tmp_path / "pkg" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    result = {row["gate"]: row for row in gates(tmp_path)}
    assert result["OldGate"] == {"gate": "OldGate", "stage": "GA", "default": "true", "locked": "true", "needs": ""}
    assert result["New"]["needs"] == "Old"


DEFAULTS = """
const (
	DefaultWebhookPort                  = 9443
	DefaultQPS                  float32 = 300.0
	DefaultTimeout                      = 30 * time.Minute
)

func SetDefaults_Configuration(cfg *Configuration) {
	cfg.Namespace = cmp.Or(cfg.Namespace, new(getOperatorNamespace()))
	cfg.Webhook.Port = cmp.Or(cfg.Webhook.Port, ptr.To[int](DefaultWebhookPort))
	cfg.ClientConnection.QPS = cmp.Or(cfg.ClientConnection.QPS, new(DefaultQPS))
	cfg.WaitForPodsReady = cmp.Or(
		cfg.WaitForPodsReady,
		&WaitForPodsReady{},
	)
	if cfg.WaitForPodsReady.Timeout.Duration == 0 {
		cfg.WaitForPodsReady.Timeout = metav1.Duration{
			Duration: DefaultTimeout,
		}
	}
	if ptr.Deref(cfg.MultiKueue.DispatcherName, "") == "Incremental" {
		cfg.MultiKueue.StepSize = cmp.Or(cfg.MultiKueue.StepSize, new(int32(3)))
	}
}
"""


def test_defaults_have_the_names_and_values_of_a_configuration(tmp_path: Path) -> None:
    file = tmp_path / "apis/config/v1beta2/defaults.go"
    file.parent.mkdir(parents=True)
    file.write_text(DEFAULTS)
    assert {row["field"]: row["value"] for row in defaults(tmp_path)} == {
        "webhook.port": "9443",
        "clientConnection.qps": "300",
        "waitForPodsReady": "{}",
        "waitForPodsReady.timeout": "30m",
    }


def table(*names: str) -> Table:
    return Table(("gate",), "", lambda folder: [{"gate": name, "stage": folder.name} for name in names])


def test_a_row_says_which_version_has_it_first() -> None:
    of = Table(("gate",), "", lambda folder: [{"gate": name} for name in folder.name.split("-")])
    result = rows(of, {"0.1.0": Path("a"), "0.1.1": Path("a-b")})
    assert result == [{"gate": "a", "since": ""}, {"gate": "b", "since": "0.1.1"}]


def test_changes_name_what_is_new_gone_and_different() -> None:
    old = [{"gate": "a", "stage": "Alpha", "since": ""}, {"gate": "b", "stage": "Beta", "since": ""}]
    new = [{"gate": "a", "stage": "Beta", "since": "0.1.1"}, {"gate": "c", "stage": "", "since": ""}]
    assert sorted(changes(table(), old, new)) == ["a: stage Alpha -> stage Beta", "b: gone", "c: new"]


def test_a_minor_release_is_its_newest_version_that_was_read() -> None:
    assert release("0.18").version == "0.18.3"


def test_nothing_is_known_of_a_release_without_a_folder() -> None:
    with pytest.raises(UnknownReleaseError, match=r"Kueue 0\.16\.4 is not known; known are 0\.17"):
        release("0.16.4")


def test_a_release_without_a_folder_is_judged_by_the_nearest() -> None:
    assert (nearest("0.9.1").minor, nearest("0.99.0").minor) == (minors()[0], minors()[-1])


def test_a_patch_release_does_not_have_what_came_later() -> None:
    assert not release("0.19.1").has_gate("PrioritizePreemptorWorkloads")
    assert release("0.19.14").has_gate("PrioritizePreemptorWorkloads")


@pytest.mark.parametrize("minor", minors())
def test_every_release_integrates_the_kinds_of_jobs_that_are_known(minor: str) -> None:
    assert {row["framework"] for row in release(minor).table("frameworks")} == set(KINDS)


@pytest.mark.parametrize("minor", minors())
def test_a_gate_needs_gates_that_its_release_has(minor: str) -> None:
    known = release(minor).gates
    assert {other for gate in known.values() for other in gate.needs} <= known.keys()


def test_the_default_ran_here() -> None:
    assert DEFAULT_VERSION in release(DEFAULT_VERSION).read
    assert release(DEFAULT_VERSION).run_here


def shown(states: list[str]) -> str:
    """The releases with a behaviour, and those of which it is not known."""
    has, unknown = (
        [minor for minor, state in zip(minors(), states, strict=True) if state == what] for what in ("yes", "not known")
    )
    assert has == [minor for minor in minors() if has[0] <= minor <= has[-1]], "a release between them is without it"
    named = "all" if len(has) == len(states) else " to ".join(dict.fromkeys((has[0], has[-1])))
    return "; ".join([named, *(f"{minor} not known" for minor in unknown)])


def test_the_page_has_the_behaviours_of_each_release(request: pytest.FixtureRequest) -> None:
    states = {
        minor: {row["behaviour"]: row["state"] for row in release(minor).table("behaviours")} for minor in minors()
    }
    rows = [
        f"| {behaviour} | {shown([states[minor][behaviour] for minor in minors()])} |"
        for behaviour in states[minors()[-1]]
    ]
    text = PAGE.read_text()
    before, _, rest = text.partition("| behaviour of Kueue | in |\n|---|---|\n")
    result = "\n".join([f"{before}| behaviour of Kueue | in |", "|---|---|", *rows, ""]) + re.sub(
        r"\A(\|.*\n)+", "", rest
    )
    if request.config.getoption("update_snapshots"):
        PAGE.write_text(result)
    assert result == text
