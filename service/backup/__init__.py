"""Backups of the service while it runs, and their way back."""
