"""Processes of attempts as the worker sees them: inventory, sweep, stacks, and the end of a shim."""
