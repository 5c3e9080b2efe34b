"""The built-in trainer: runs a recipe under torchrun, and off the queue as well."""
