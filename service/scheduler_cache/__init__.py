"""The model, kept true to the database."""
