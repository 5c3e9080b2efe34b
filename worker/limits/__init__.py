"""Limits of what an attempt may use of its node: memory, CPUs, processes and GPUs, held by the kernel's cgroups."""
