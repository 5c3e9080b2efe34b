"""The queue as people see it."""
