"""Infrastructure of the service: wake-ups, dispatch to the nodes, threads, figures, times."""
