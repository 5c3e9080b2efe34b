"""Progress of a run, read from what its script prints: progress bars and lines such as ``epoch 3/90``. Pure."""
