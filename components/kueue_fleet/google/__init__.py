"""What a fleet has in Google Cloud, as plain data: each resource by the provider's own names, without Pulumi."""
