"""As much of the other stack as the fleet needs. Yours makes the cluster, of EKS, AKS or RKE2, and exports the same."""

import pulumi

pulumi.export("kubeconfig", pulumi.Config().require_secret("kubeconfig"))
