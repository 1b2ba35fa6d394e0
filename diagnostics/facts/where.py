"""A place in the user's code."""

from __future__ import annotations

from diagnostics.facts.frozen import frozen


@frozen
class Where:
    """A line in the user's own code."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        """Render as `train.py:31 in main`."""
        place = f"{self.file}:{self.line}"
        return place if self.function == "<module>" else f"{place} in {self.function}"
