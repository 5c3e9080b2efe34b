"""The scheduler's data: nodes, jobs as columns, decisions. No database, no clock."""
