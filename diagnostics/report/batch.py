"""The result of `show_batch`, and the panel of the first batch in a report: rows next to their targets."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.padding import Padding
from rich.text import Text

from diagnostics.errors import InvalidInput
from diagnostics.facts.array import Array
from diagnostics.facts.batch_view import BatchPart, BatchView
from diagnostics.text.join import count_of
from diagnostics.text.visible import visible

from .as_text import WIDTH, AsText
from .html.batch import bounds_of, colours, heading_of, is_picture, title_of, views_as_html
from .png import below_each_other, png, side_by_side
from .tokens import TokenStrip

BARS = "▁▂▃▄▅▆▇█"
SPARKS = 48  # characters of a sparkline, at most
NUMBERS = 6  # of a row, before the sparkline


@dataclass(frozen=True, repr=False)
class BatchPicture(AsText):
    """What `diagnostics.show_batch` found.

    Attributes:
        views: the rows of one batch, or of one in training and one in evaluation.
    """

    views: tuple[BatchView, ...]
    _written: dict[str, Path] = field(default_factory=dict, init=False, compare=False)

    def to_html(self) -> str:
        """Return the batch as HTML that needs no style of a page."""
        return f"<div>{views_as_html(self.views)}</div>"

    _repr_html_ = to_html

    def save(self, path: str | Path) -> Path:
        """Write the batch to a file that is not there yet: ``.html``, ``.txt``, or ``.png`` for its images.

        Raises:
            InvalidInput: the file exists, its name ends in something else, or the batch has no images for a PNG.
            OSError: the file cannot be written.
        """
        target = Path(path)
        if target.suffix == ".png":
            if (pixels := mosaic(*self.views)) is None:
                raise InvalidInput("save() has no images to write: save the batch as .html or .txt instead.")
            data = png(pixels)
        elif target.suffix == ".html":
            from .html.page import document

            data = document("A batch", f"<h1>A batch</h1>{views_as_html(self.views)}").encode()
        elif target.suffix == ".txt":
            data = f"{self.to_text(WIDTH)}\n".encode()
        else:
            raise InvalidInput(f"save() was given {str(path)!r}; the name must end in .html, .txt or .png.")
        try:
            with target.open("xb") as file:
                file.write(data)
        except FileExistsError:
            raise InvalidInput(f"save() was given {str(path)!r}, which exists. Pass another name.") from None
        return target

    def _lines(self, width: int) -> Iterator[Text | Padding | TokenStrip]:
        for number, view in enumerate(self.views):
            if number:
                yield Text()
            yield from _of_view(view, width)
        if (pixels := mosaic(*self.views)) is not None:
            yield Text()
            yield Text(f"The images: {self._file(pixels)}", overflow="fold")

    def _file(self, pixels: Array) -> str:
        """Write the images to a new file, once, and return its path; without a folder to write to, say so."""
        if "png" not in self._written:
            try:
                number, name = tempfile.mkstemp(prefix="batch-", suffix=".png")
            except OSError as error:
                return f"not written ({error.strerror}); see save()"
            with os.fdopen(number, "wb") as file:
                file.write(png(pixels))
            self._written["png"] = Path(name)
        return str(self._written["png"])


def mosaic(*views: BatchView) -> Array | None:
    """Return the images of batches, masks below them, as one image (height, width, 3); None without any."""
    parts = [part for view in views for part in (*view.inputs, *view.targets)]
    bands = [side_by_side(colours(part)) for part in parts if is_picture(part)]
    return below_each_other(bands) if bands else None


def _of_view(view: BatchView, width: int) -> Iterator[Text | Padding | TokenStrip]:
    yield Text(visible(title_of(view)), style="bold")
    for part, role in (*((p, "input") for p in view.inputs), *((p, "target") for p in view.targets)):
        yield Text()
        yield Text(visible(heading_of(part, role)), style="bold")
        yield from _notes(part)
        yield from _rows(part, width)
    if view.left_out:
        yield Text(f"{count_of(view.left_out, 'further part')} not shown.", style="dim")


def _notes(part: BatchPart) -> Iterator[Text]:
    if part.notes:
        yield Text(visible(f"  {'; '.join(part.notes)}"), style="dim")


def _rows(part: BatchPart, width: int) -> Iterator[Text | Padding | TokenStrip]:
    """Yield the rows of a part, but for images."""
    if part.tokens is not None:
        strip = TokenStrip(part.tokens, "", len(part.tokens.rows))
        yield Padding(Text("\n").join(strip.body(width - 2)), (0, 0, 0, 2))
    for number, text in enumerate(part.texts, 1):
        yield _cut(f"  row {number}  {visible(text)}".replace("\n", "⏎"), width)
    if part.values is None:
        return
    if part.kind == "classes":
        yield _cut(f"  rows 1 to {len(part.values)}: {', '.join(map(str, part.values.tolist()))}", width)
    elif part.kind == "numbers":
        said = ", ".join(f"{value:.4g}" for value in part.values.tolist())
        yield _cut(f"  rows 1 to {len(part.values)}: {said}", width)
    elif part.kind in ("table", "series"):
        bounds = bounds_of(part)
        for number, row in enumerate(np.asarray(part.values), 1):
            line = row if row.ndim == 1 else row[:, 0]
            numbers = " ".join(f"{value:>9.3g}" for value in line[: max(1, min(NUMBERS, (width - 30) // 10))])
            spark = sparkline(line, *bounds) if len(line) > 1 else ""
            yield _cut(f"  row {number}  {numbers}  {spark[: max(0, width - 12 - len(numbers))]}", width)


def _cut(line: str, width: int) -> Text:
    text = Text(line, no_wrap=True, overflow="ellipsis")
    text.truncate(width, overflow="ellipsis")
    return text


def sparkline(values: Array, low: float, high: float) -> str:
    """Draw numbers as bars between two bounds; one that is not finite leaves a space."""
    if len(values) > SPARKS:
        values = values[np.linspace(0, len(values) - 1, SPARKS).astype(int)]
    scaled = (np.asarray(values, np.float64) - low) / ((high - low) or 1.0) * (len(BARS) - 1)
    return "".join(BARS[min(max(round(one), 0), len(BARS) - 1)] if np.isfinite(one) else " " for one in scaled)
