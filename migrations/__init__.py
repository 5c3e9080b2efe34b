"""The schema's history. `service.bootstrap.migrate` brings a database to its newest version."""
