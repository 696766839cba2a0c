"""One client for Kubernetes API servers: lists that are kept up to date, and requests that spare a busy server.

`kubeconfig` reads and writes one, `access` says how to reach a server, `client` sends requests to it,
`command_client` and `requests` those of commands, `beside` in a thread of its own, `answers` reads what it says,
`watching` follows a list through any client that is an `api`, `permissions` says what a request needs.
"""
