"""Explanations and forecasts of the policy's decisions. Pure."""
