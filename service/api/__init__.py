"""HTTP: routes, answers, streams, middleware."""
