"""The programs here are run by `measure.py`, each in a process of its own; pytest must not import them."""

collect_ignore_glob = ["broken/*", "healthy/*"]
