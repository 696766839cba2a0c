"""Kueue's Configuration, and how Kueue and JobSet are installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st

from kueue_fleet.fleet_file.model.kueue_installation import JOBSET_FRAMEWORK
from tests.fleet_files.drawing import Data, Draw, composed, fields, flags, one_of, part, some_of

_FRAMEWORKS = ("batch/job", "jobset.x-k8s.io/jobset", "ray.io/rayjob", "pod")
_GATES = ("FlavorFungibility", "LocalQueueMetrics", "ShortWorkloadNames", "ConcurrentAdmission", "PriorityBoost")
_DURATIONS = one_of("0s", "30s", "5m", "1h30m")
_PORTS = st.integers(1024, 65535)
_SELECTORS: st.SearchStrategy[Data] = one_of(
    {"matchLabels": {"example.com/kueue": "yes"}},
    {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}]},
)


def _retries(draw: Draw) -> Data:
    return fields(
        draw,
        timestamp=one_of("Eviction", "Creation"),
        backoffLimitCount=st.integers(0, 9),
        backoffBaseSeconds=st.integers(1, 90),
        backoffMaxSeconds=st.integers(90, 900),
    )


def _metric_label(draw: Draw, name: str) -> Data:
    kind = draw(one_of("ClusterQueue", "LocalQueue", "Cohort", "Workload"))
    values = {"trackedValues": ["a", "b"]} if kind == "Workload" or draw(flags) else {}
    source = draw(one_of({}, {"sourceLabelKey": "example.com/a"}, {"sourceAnnotationKey": "example.com/b"}))
    kinds = {} if kind == "ClusterQueue" and draw(flags) else {"sourceKind": kind}
    return {"name": name, **source, **kinds, **values}


def _resources(draw: Draw) -> Data:
    device: Data = {"name": "example.com/whole", "deviceClassNames": ["gpu.example.com"]}
    selector = {"cel": {"expression": "device.driver == 'gpu.example.com'"}}
    counter = {"name": "memory", "driver": "gpu.example.com", "deviceSelector": selector}
    counted: Data = {"name": "example.com/part", "deviceClassNames": ["mig.example.com"], "sources": [{}]}
    counted["sources"][0]["counter"] = counter
    transformation: Data = {"input": "nvidia.com/mig-1g.5gb", **fields(draw, strategy=one_of("Retain", "Replace"))}
    transformation |= fields(draw, multiplyBy=one_of("cpu"))
    transformation |= fields(draw, outputs=one_of({"example.com/gpu-memory": "5Gi", "example.com/credits": 10}))
    limits = one_of(
        {"quotaCheckStrategy": "BlockUndeclared"},
        {"quotaCheckStrategy": "IgnoreUndeclared"},
        {"excludeResourcePrefixes": ["example.com/"]},
        {"quotaCheckStrategy": "BlockUndeclared", "excludeResourcePrefixes": ["example.com/"]},
    )
    return {
        **draw(limits),
        **fields(
            draw, transformations=st.just([transformation]), deviceClassMappings=one_of([device], [device, counted])
        ),
    }


def _metrics(draw: Draw) -> Data:
    selector: Data = {"localQueueSelector": draw(_SELECTORS)} if draw(flags) else {}
    return fields(
        draw,
        bindAddress=one_of(":8080", "0"),
        enableClusterQueueResources=flags,
        customLabels=st.just([_metric_label(draw, "team"), _metric_label(draw, "cost_centre")]),
        localQueueMetrics=one_of({"enable": True, **selector}, {"enable": False}),
    )


def _wait_for_pods_ready(draw: Draw) -> Data:
    return fields(
        draw,
        timeout=_DURATIONS,
        blockAdmission=flags,
        requeuingStrategy=composed(_retries),
        recoveryTimeout=_DURATIONS,
    )


def _multi_kueue(draw: Draw) -> Data:
    return fields(
        draw,
        externalFrameworks=one_of([{"name": "Bar.v1.example.com"}]),
    )


_OPTIONAL: Final[Mapping[str, st.SearchStrategy[Any]]] = {
    "webhook": part(port=_PORTS, host=one_of("127.0.0.1"), certDir=one_of("/certs")),
    "leaderElection": part(
        leaderElect=flags,
        leaseDuration=_DURATIONS,
        renewDeadline=_DURATIONS,
        retryPeriod=_DURATIONS,
        resourceLock=one_of("leases"),
        resourceName=one_of("kueue-lease"),
        resourceNamespace=one_of("kueue-system"),
    ),
    "metrics": composed(_metrics),
    "health": part(
        healthProbeBindAddress=one_of(":8082"),
        readinessEndpointName=one_of("ready"),
        livenessEndpointName=one_of("live"),
    ),
    "pprofBindAddress": one_of(":6060"),
    "controller": part(
        groupKindConcurrency=one_of({"Job.batch": 7}, {"Pod": 2, "RayJob.ray.io": 3}),
        cacheSyncTimeout=one_of(120_000_000_000),
    ),
    "tls": one_of(
        {"minVersion": "VersionTLS13"},
        {"minVersion": "VersionTLS12", "cipherSuites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]},
        {"curvePreferences": [29, 23]},
    ),
    "manageJobsWithoutQueueName": flags,
    "managedJobsNamespaceSelector": _SELECTORS,
    "internalCertManagement": part(
        enable=flags, webhookServiceName=one_of("kueue-hooks"), webhookSecretName=one_of("kueue.hooks")
    ),
    "waitForPodsReady": composed(_wait_for_pods_ready),
    "clientConnection": part(qps=one_of(50, 12.5), burst=st.integers(60, 600)),
    "integrations": part(
        frameworks=some_of(_FRAMEWORKS, 1),
        externalFrameworks=one_of(["Foo.v1.example.com"]),
        labelKeysToCopy=one_of(["example.com/cost-centre"]),
    ),
    "multiKueue": composed(_multi_kueue),
    "fairSharing": one_of(
        {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        {"preemptionStrategies": ["LessThanInitialShare"]},
    ),
    "admissionFairSharing": part(
        usageHalfLifeTime=_DURATIONS,
        usageSamplingInterval=_DURATIONS,
        resourceWeights=one_of({"cpu": 0.5, "nvidia.com/gpu": 2}),
    ),
    "resources": composed(_resources),
    "featureGates": st.dictionaries(one_of(*_GATES), flags, min_size=1, max_size=3),
    "objectRetentionPolicies": composed(
        lambda draw: {"workloads": fields(draw, afterFinished=_DURATIONS, afterDeactivatedByKueue=_DURATIONS)}
    ),
    "visibilityServer": part(bindAddress=one_of("127.0.0.1"), bindPort=_PORTS),
}


# What fleet and cluster say of these has to fit together, since it is merged.
_OF_THE_FLEET: Final = ("tls", "resources")
_OF_A_CLUSTER: Final = {name: value for name, value in _OPTIONAL.items() if name not in _OF_THE_FLEET}


def configurations(draw: Draw) -> Data:
    """The fleet's Configuration; what the fleet's own sections set is left out."""
    return fields(draw, **_OPTIONAL)


def cluster_configurations(draw: Draw) -> Data:
    """What of the Configuration is different on one cluster."""
    return fields(draw, **_OF_A_CLUSTER)


_SPREAD: Final = {"topologyKey": "kubernetes.io/hostname", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}


def installations(draw: Draw) -> Data:
    """The sections `kueue`, `jobSet`, `operators` and `nvidiaDraDriver`."""
    kueue = fields(
        draw,
        version=one_of("0.19.2", "0.19.1"),
        chart=one_of("oci://mirror.example.com/charts/kueue"),
        namespace=one_of("kueue-system", "batch-system"),
        image=one_of("mirror.example.com:5000/kueue/kueue"),
        replicas=one_of(1, 3),
        minAvailable=one_of(0),
        resources=part(
            requests=part(cpu=one_of("250m", 1), memory=one_of("1Gi")),
            limits=part(cpu=one_of(4), memory=one_of("4Gi")),
        ),
        topologySpread=one_of([], [{"topologyKey": "example.com/rack"}], [_SPREAD]),
        priorityClassName=one_of("platform"),
        configuration=composed(configurations),
    )
    job_set = fields(
        draw,
        enabled=flags,
        version=one_of("0.11.0"),
        chart=one_of("oci://mirror.example.com/charts/jobset"),
        image=one_of("mirror.example.com/jobset/jobset"),
        namespace=one_of("jobset-system", "sets"),
    )
    driver = fields(
        draw,
        version=one_of("0.4.0"),
        chart=one_of("oci://mirror.example.com/charts/driver"),
        image=one_of("mirror.example.com/driver"),
        namespace=one_of("drivers"),
    )
    sections = {"kueue": kueue, "jobSet": job_set, "operators": _operators(draw), "nvidiaDraDriver": driver}
    return {name: section for name, section in sections.items() if section}


def _operators(draw: Draw) -> Data:
    drawn = fields(
        draw,
        kubeRay=_operator(repository=one_of(None, "https://charts.example.com")),
        leaderWorkerSet=_operator(repository=one_of("https://charts.example.com")),
        trainer=_operator(repository=one_of("https://charts.example.com")),
        installedElsewhere=one_of(["kubeflow.org/mpijob"], []),
    )
    if "trainer" in drawn:  # It needs JobSet, which the fleet need not install.
        drawn["installedElsewhere"] = [*drawn.get("installedElsewhere", []), JOBSET_FRAMEWORK]
    return drawn


def _operator(**own: st.SearchStrategy[Any]) -> st.SearchStrategy[Data]:
    return part(
        version=one_of("1.2.3"),
        chart=one_of("oci://mirror.example.com/charts/operator"),
        image=one_of("mirror.example.com/operator"),
        namespace=one_of("operators"),
        **own,
    )
