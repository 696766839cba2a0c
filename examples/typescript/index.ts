/** Queues for GPU jobs on a cluster that exists already: what a platform team adds to a cluster that it did not make. */
import * as k8s from "@pulumi/kubernetes";
import * as fleet from "@pulumi/kueue-fleet";
import * as pulumi from "@pulumi/pulumi";

const config = new pulumi.Config();
const cluster = new k8s.Provider("cluster", {
    kubeconfig: config.requireSecret("kubeconfig"),
    // Plain text that never changes: without it, a new address of the cluster would replace everything in it.
    clusterIdentifier: config.get("cluster") ?? "projects/my-gcp-project/locations/us-central1/clusters/batch",
});
const inCluster = { provider: cluster };

// Kueue's own fields, with completion and types: a name that Kueue does not know does not compile.
const l4 = new fleet.ResourceFlavor(
    "l4",
    { spec: { nodeLabels: { "cloud.google.com/gke-accelerator": "nvidia-l4" } } },
    inCluster,
);
const spot = new fleet.ResourceFlavor(
    "l4-spot",
    { spec: { nodeLabels: { "cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-spot": "true" } } },
    inCluster,
);
const research = new fleet.Cohort("research", { spec: {} }, inCluster);

const gpusOfTeam: Record<string, number> = { "team-vision": 8, "team-language": 4 };
for (const [team, gpus] of Object.entries(gpusOfTeam)) {
    const namespace = new fleet.Namespaces(team, { spec: [team] }, inCluster);
    const queue = new fleet.ClusterQueue(
        team,
        {
            spec: {
                cohortName: "research",
                namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": team } },
                queueingStrategy: "BestEffortFIFO",
                preemption: { reclaimWithinCohort: "Any" },
                resourceGroups: [
                    {
                        coveredResources: ["nvidia.com/gpu"],
                        flavors: [
                            { name: "l4", resources: [{ name: "nvidia.com/gpu", nominalQuota: gpus }] },
                            { name: "l4-spot", resources: [{ name: "nvidia.com/gpu", nominalQuota: 2 * gpus }] },
                        ],
                    },
                ],
            },
        },
        // A queue is Active only with its flavors and cohort, and is deleted before them.
        { ...inCluster, dependsOn: [l4, spot, research] },
    );
    new fleet.LocalQueue(
        `${team}-gpu`,
        { objectName: "gpu", namespace: team, spec: { clusterQueue: team } },
        { ...inCluster, dependsOn: [namespace, queue] },
    );
}

export const queues = Object.keys(gpusOfTeam);
