"""Sweeps: one spec that stands for many jobs, and what holds for all of them together."""
