"""What Pulumi starts as the component plugin; PulumiPlugin.yaml beside it says how."""

from kueue_fleet.plugin import main

main()
