"""From an assignment to the first instruction: files, environment, command line, and the fork of the shim."""
