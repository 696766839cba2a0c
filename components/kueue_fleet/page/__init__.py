"""The live page: its files, how they are served, and the page for teams that runs beside the controller.

That of administrators, `kueue-fleet status --page`, is in the command line, which reads the clusters.
"""
