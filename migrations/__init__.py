"""The schema's history. `service.db.schema.migrate` brings a database to its newest version."""
