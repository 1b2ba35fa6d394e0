"""The command `diagnose`: arguments and exit codes."""
