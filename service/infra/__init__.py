"""What every part of the service stands on: wake-ups, dispatch to the nodes, threads, figures, times."""
