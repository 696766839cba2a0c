"""Stand-ins for Pulumi's plugins, used only where the real ones are absent.

Pulumi's command line built from its Go module has no Python language host and no provider plugins. Each module here
replaces one of them for a rehearsal, on loopback only, and refuses by name whatever it does not do; none of them
pretends that something happened. `install.install_standins` writes the executables; `plugin_info` in every one of
them reports a version that ends in `+standin`.

This package imports nothing when it is imported: a fleet starts one provider process per cluster, so what a process
imports is counted.
"""
