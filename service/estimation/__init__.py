"""How long jobs will run, and how good such estimates were."""
