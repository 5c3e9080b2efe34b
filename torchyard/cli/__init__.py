"""The ``yard`` command. Modules import what is heavy inside their functions: ``yard --help`` must be quick."""
