"""Whether a fleet fits into its Google Cloud project: APIs, quotas, machines, reservations, addresses and permissions.

`needs` says what a fleet asks of a project, `google_cloud` reads what the project has, `findings` compares the two. Of
clusters outside GKE, `plain_clusters` says and compares it, and `live_clusters` reads.
"""
