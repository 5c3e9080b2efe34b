"""Starting attempts: files, environment, command line, and the fork of the shim."""
