"""The policy pack: the library's rules and the company's."""

import sys
from pathlib import Path

from pulumi_policy import PolicyPack

from kueue_fleet_policies import policies

sys.path.insert(0, str(Path(__file__).parents[1]))  # where `company` is, unless it is installed

from company.rules import RULES

PolicyPack(name="company", policies=[*policies(), *(rule.policy() for rule in RULES)])
