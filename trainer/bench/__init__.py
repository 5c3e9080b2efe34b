"""The strategies side by side: one model, one effective batch, growing numbers of devices."""
