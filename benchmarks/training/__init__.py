"""What the trainer costs, each figure against the bare thing in the same process."""
