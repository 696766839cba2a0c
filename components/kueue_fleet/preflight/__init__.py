"""Whether a fleet fits into its Google Cloud project: APIs, quotas, machines, reservations, addresses and permissions.

`needs` says what a fleet asks of a project, `google_cloud` reads what the project has, `findings` compares the two.
"""
