"""Stopping a running job for another without losing a step."""
