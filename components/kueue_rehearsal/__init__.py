"""A whole fleet on this machine: real control planes, simulated GPUs, stand-ins for what only a cloud has.

`session` runs the rehearsal; `supervisor` owns every process of it; `engines` finds or builds the programs.
"""
