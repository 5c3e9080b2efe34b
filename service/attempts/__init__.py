"""What is known of an attempt, and what its node is told to start it."""
