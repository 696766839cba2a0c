"""ClusterQueues: what they hold, what waits in them, and which workload is in which."""
