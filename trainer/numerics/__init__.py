"""Types, memory layouts and algorithms that a model is computed with."""
