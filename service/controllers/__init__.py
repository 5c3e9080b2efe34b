"""Loops that bring jobs and nodes to the wanted state: scheduler, monitor, limits, early stopping."""
