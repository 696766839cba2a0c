"""Stand-ins for Google Cloud, and what every stand-in for one of Pulumi's plugins is made from.

A rehearsal has no Google Cloud: `gcp_provider` replaces Pulumi's provider for it, and `gke_auth` Google's credential
plugin. Both work on loopback only and refuse by name whatever they do not do; nothing pretends that something
happened. `executables.install_standins` writes the executables, each of which reports a version that ends in
`+standin`. Stand-ins for what users of Pulumi install anyway are in a distribution of their own, `offline/`.

This package imports nothing when it is imported: a fleet starts one provider process per cluster, so what a process
imports is counted.
"""
