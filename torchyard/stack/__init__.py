"""The embedded stack: Redis, service and worker of one box, held up by ``yard up``."""
