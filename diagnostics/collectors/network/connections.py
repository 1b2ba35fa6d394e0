"""Plain TCP connections between every two ranks, which need no communication library."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

MOST_AT_ONCE = 32
ANSWER_S = 5.0  # a peer that accepts answers at once


@dataclass(frozen=True)
class Unreached:
    """A peer that could not be reached; `kind` as in `NetworkFailure`."""

    peer: int
    kind: str
    text: str


class Listener:
    """Answers whoever connects with this rank's number, until the process ends."""

    def __init__(self, rank: int, token: str) -> None:
        self._rank, self._token = rank, token
        self._socket = socket.create_server(("", 0), backlog=socket.SOMAXCONN)
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), connection:
            connection.settimeout(ANSWER_S)
            if connection.makefile("r").readline(200).strip() == self._token:
                connection.sendall(f"{self._rank}\n".encode())

    def close(self) -> None:
        """Stop to listen."""
        self._socket.close()


def reach(peer: int, address: str, port: int, token: str, limit: float) -> Unreached | None:
    """Connect to a peer's listener and let it answer; None if it does."""
    place = f"{address}:{port}"
    try:
        with socket.create_connection((address, port), timeout=limit) as connection:
            connection.settimeout(min(limit, ANSWER_S))
            connection.sendall(f"{token}\n".encode())
            answer = connection.makefile("r").readline(200).strip()
    except ConnectionRefusedError:
        return Unreached(peer, "refused", place)
    except TimeoutError:
        return Unreached(peer, "no answer", place)
    except OSError as error:
        return Unreached(peer, "", f"{place}: {error.strerror or error}")
    return None if answer == str(peer) else Unreached(peer, "", f"{place}: another program answered")


def reach_all(peers: Iterable[tuple[int, str, int]], token: str, limit: float) -> list[Unreached]:
    """Connect to all peers at once, given rank, address and port of each; return those that were not reached."""
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        tried = list(pool.map(lambda one: reach(one[0], one[1], one[2], token, limit), peers))
    return [one for one in tried if one is not None]
