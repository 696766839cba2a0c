"""What happened in clusters with Kueue, as events that last: read from Workloads or a CSV, kept as Parquet by day.

Events are made by pure functions of what a cluster prints. `store` alone has files, and needs pyarrow.
"""
