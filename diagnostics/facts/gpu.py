"""Facts about a GPU: its memory, and the processes that use it."""

from __future__ import annotations

from collections.abc import Sequence

from diagnostics.facts.frozen import frozen

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@frozen
class Holder:
    """A process that holds memory of a GPU. None in a field means "not known".

    Attributes:
        size: bytes of the GPU's memory that it holds.
        frameworks: those of ``TensorFlow``, ``PyTorch`` and ``JAX`` whose libraries it has loaded; None if that
            could not be read, as is usual for other users' processes.
        command: its command line.
    """

    pid: int
    size: int | None = None
    user: str | None = None
    frameworks: tuple[str, ...] | None = None
    command: str | None = None

    def __str__(self) -> str:
        """Render as `20.3 GiB in process 4711 (ada, TensorFlow)`, with as much of it as is known."""
        known = ", ".join(part for part in (self.user, *(self.frameworks or ())) if part)
        held = "" if self.size is None else f"{in_bytes(self.size)} in "
        return f"{held}process {self.pid}{f' ({known})' if known else ''}"


@frozen
class CardFacts:
    """One GPU, as its driver describes it. Sizes in bytes.

    Attributes:
        index: as the driver counts, which `CUDA_VISIBLE_DEVICES` may hide or reorder for a program.
        holders: the processes on it, the one that holds most first.
    """

    index: int
    name: str
    total: int
    free: int
    holders: tuple[Holder, ...] = ()
    driver: str | None = None


def in_bytes(size: float) -> str:
    """Render a size with the unit that a person would choose: `1.5 GiB`, `20.0 MiB`, `512 B`."""
    power = 0
    while abs(size) >= 1024 and power < len(_UNITS) - 1:
        size, power = size / 1024, power + 1
    return f"{size:.0f} B" if power == 0 else f"{size:.1f} {_UNITS[power]}"


def listed(holders: Sequence[Holder], most: int = 4) -> str:
    """Name the holders, those that hold most first, and count those left out."""
    ordered = sorted(holders, key=lambda holder: -(holder.size or 0))
    rest = f", and {len(ordered) - most} more" if len(ordered) > most else ""
    return ", ".join(map(str, ordered[:most])) + rest
