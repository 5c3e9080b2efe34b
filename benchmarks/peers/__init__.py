"""The same work given to other queues on the same machine, in turn (``python -m benchmarks.peers``)."""
