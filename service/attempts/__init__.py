"""Knowledge of attempts, and what a node is told to start it."""
