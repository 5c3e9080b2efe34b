"""GPUs and CPU slots of the node: which there are, whose they are, and how busy."""
