"""The ranks of a training: starting them, the process group, and what travels between them."""
