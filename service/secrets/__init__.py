"""Secrets of users and projects: stored encrypted, and given to their jobs at the launch."""
