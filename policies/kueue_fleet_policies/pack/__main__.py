"""The policy pack: every rule of `kueue_fleet_policies`."""

from pulumi_policy import PolicyPack

from kueue_fleet_policies import PACK_NAME, policies

PolicyPack(name=PACK_NAME, policies=policies())
