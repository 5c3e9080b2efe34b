"""Files of jobs: snapshots, checkpoints, outputs, and what is kept of them."""
