"""Reading what nodes have sent: logs, metrics, stacks."""
