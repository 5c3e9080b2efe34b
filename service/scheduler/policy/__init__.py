"""The policy: a pure function from the model to decisions."""
