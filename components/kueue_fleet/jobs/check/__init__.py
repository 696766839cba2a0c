"""What is wrong with jobs that could be read: one module per subject."""
