"""The messages that are recognised, as data: one row per wording, read by `table`."""
