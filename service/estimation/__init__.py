"""Estimates of running times, and how good earlier ones were."""
