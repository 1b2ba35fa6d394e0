"""Ports of this host for the processes that a test starts."""

import random
import socket

_random = random.SystemRandom()  # so that neither a test's seed nor the process beside it draws the same


def free_port():
    """Return a port that nobody listens on, and that the system gives to no connection in the meantime.

    The system draws the ports of connections from 32768 on (Linux) or 49152 on (others). A rank that reaches such
    a connection in place of its store waits for an answer for half an hour.
    """
    while True:
        port = _random.randrange(20_000, 32_768)
        with socket.socket() as trying:
            try:
                trying.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
