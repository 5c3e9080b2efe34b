"""A training from its components: epochs, evaluation, metrics, and when to log and save."""
