"""What is drawn line by line: on a terminal as wide as that is, as text at a fixed width."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

WIDTH, NARROWEST = 100, 40  # columns of the text; a terminal's own width where that is known


class AsText:
    """A base class: `str()` and rich draw what `_lines` yields."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self._lines(max(options.max_width, NARROWEST))

    def __str__(self) -> str:
        return self.to_text(WIDTH)

    __repr__ = __str__

    def to_text(self, width: int) -> str:
        """Return it as text, at most that many columns wide."""
        buffer = io.StringIO()
        console = Console(
            file=buffer, width=width, color_system=None, highlight=False, emoji=False, force_jupyter=False
        )
        for line in self._lines(max(width, NARROWEST)):
            console.print(line)
        return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())

    def _lines(self, width: int) -> Iterator[RenderableType]:
        raise NotImplementedError
