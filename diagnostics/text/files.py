"""Reads files that a user has named."""

from __future__ import annotations

from pathlib import Path

from diagnostics.errors import InvalidInput


def bytes_of(path: Path, largest: int, advice: str = "") -> bytes:
    """Read a file.

    Args:
        path: of the file.
        largest: number of bytes that are read at most.
        advice: what to do about a larger file.

    Raises:
        InvalidInput: it cannot be read, or is too large.
    """
    try:
        size = path.stat().st_size
        if size > largest:
            most = f"at most {largest / 2**20:.0f} are read. {advice}".rstrip()
            raise InvalidInput(f"{path} has {size / 2**20:,.0f} MB, and {most}")
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
