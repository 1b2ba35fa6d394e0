"""Meets the other ranks at PyTorch's TCPStore, and says why where that fails."""

from __future__ import annotations

import errno
import json
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

PAUSE_S = 0.05  # between two looks at the store
MOST_SAID = 300  # characters of an error's first line


class RendezvousFailed(Exception):
    """The store could not be reached or made; `kind` as in `NetworkFailure`."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text


@dataclass(frozen=True)
class Rendezvous:
    """A store, and where it is.

    Attributes:
        host: of rank 0, or of the launcher that holds the store.
        port: 0 for any that is free.
        limit: seconds to come there.
    """

    host: str
    port: int
    limit: float

    def hosted(self) -> Any:
        """Listen, as rank 0.

        Raises:
            RendezvousFailed: the port is taken, or the address is not this host's.
        """
        try:
            return self._store(is_master=True)
        except Exception as error:
            if self.port and _is_taken(self.port):
                raise RendezvousFailed("port taken", f"{self.host}:{self.port}") from None
            raise RendezvousFailed("", one_line(error)) from None

    def joined(self) -> Any:
        """Connect, as any other rank; tries again until the limit: rank 0 may start later.

        Raises:
            RendezvousFailed: nothing listens there, nothing answers, or it is no store.
        """
        until = time.monotonic() + self.limit
        problem = RendezvousFailed("no answer", "")
        while (left := until - time.monotonic()) > 0:
            try:
                socket.create_connection((self.host, self.port), timeout=left).close()
                break
            except socket.gaierror as error:
                problem = RendezvousFailed("unresolved", error.strerror or str(error))
            except ConnectionRefusedError:
                problem = RendezvousFailed("refused", "")
            except TimeoutError:
                problem = RendezvousFailed("no answer", "")
            except OSError as error:
                unroutable = error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH)
                problem = RendezvousFailed("no answer" if unroutable else "", error.strerror or str(error))
            time.sleep(min(0.2, max(0.0, until - time.monotonic())))
        else:
            raise problem
        try:
            return self._store(is_master=False)
        except Exception as error:
            raise RendezvousFailed("not a store", one_line(error)) from None

    def _store(self, is_master: bool) -> Any:
        from torch.distributed import TCPStore

        made: list[Any] = []

        def make() -> None:
            limit = timedelta(seconds=self.limit)
            try:
                made.append(
                    TCPStore(self.host, self.port, is_master=is_master, timeout=limit, wait_for_workers=False)
                )
            except Exception as error:
                made.append(error)

        # Its own limit does not hold where something accepts the connection and says nothing.
        thread = threading.Thread(target=make, daemon=True)
        thread.start()
        thread.join(self.limit)
        if not made:
            raise TimeoutError(f"no answer within {self.limit:g} s")
        if isinstance(made[0], Exception):
            raise made[0]
        return made[0]


def _is_taken(port: int) -> bool:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trying:
            trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trying.bind(("", port))
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False


class Board:
    """The store as a notice board: never waits within it, because its client serves one call at a time."""

    def __init__(self, store: Any, limit: float) -> None:
        self._store, self._limit = store, limit

    def claim(self, rank: int, who: str) -> str | None:
        """Take a rank's number; return who has taken it before, None if nobody has."""
        number = self._store.add(f"{rank}/claims", 1)
        self._store.set(f"{rank}/claim/{number}", who)
        return None if number == 1 else self.claims(rank)[0]

    def claims(self, rank: int) -> list[str]:
        """Return the processes that took a number."""
        count = self._store.add(f"{rank}/claims", 0)
        keys = [f"{rank}/claim/{number}" for number in range(1, count + 1)]
        return [self._store.get(key).decode() for key in keys if self._store.check([key])]

    def write(self, rank: int, notes: str) -> None:
        """Replace a rank's notes."""
        self._store.set(f"{rank}/state", notes)

    def state(self, rank: int) -> dict[str, Any] | None:
        """Return a rank's notes; None if it has not come."""
        if not self._store.check([f"{rank}/state"]):
            return None
        state: dict[str, Any] = json.loads(self._store.get(f"{rank}/state"))
        return state

    def post(self, key: str, value: Any) -> None:
        """Write a value for all."""
        self._store.set(key, json.dumps(value))

    def awaited(self, keys: Sequence[str], limit: float | None = None) -> dict[str, Any]:
        """Return the values of keys as soon as all are there; after the limit, of those that are."""
        until = time.monotonic() + (self._limit if limit is None else limit)
        found: dict[str, Any] = {}
        while True:
            for key in keys:
                if key not in found and self._store.check([key]):
                    found[key] = json.loads(self._store.get(key))
            if len(found) == len(keys) or time.monotonic() > until:
                return found
            time.sleep(PAUSE_S)


def one_line(error: BaseException) -> str:
    """Return type and first line of an exception, without the stack of C++ that PyTorch adds."""
    text = str(error).partition("Exception raised from")[0].strip()
    said = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {said}"[:MOST_SAID]
