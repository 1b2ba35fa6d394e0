"""The gradient by position in sequences of increasing length, as text, chart and HTML page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.checks import PositionGradients

from .result import CheckResult

BARS = " ▁▂▃▄▅▆▇█"
COLUMNS = 48  # of a picture in a terminal
DECADES = 8.0  # from an empty bar to a full one: float32 holds no more of a sum


@dataclass(frozen=True)
class PositionProfile:
    """The result of `GradientChecks.through_time`.

    Attributes:
        gradients: by length and position.
        at_least: the share of the largest gradient that must reach the first position.
        exploded: the ratio of the first position's gradient to the last position's at which the check fails.
    """

    gradients: PositionGradients
    at_least: float
    exploded: float

    def share(self, length: int) -> float:
        """Return the gradient at the first position, as a share of the largest."""
        return self.gradients.share(length)

    def result(self) -> CheckResult:
        """Judge the first length at which something is wrong, or all lengths."""
        name, numbers = "through time", {str(length): self.share(length) for length in self.gradients.profiles}
        for length in self.gradients.profiles:
            share, growth = self.share(length), self.gradients.growth(length)
            if math.isnan(share):
                return CheckResult(
                    name, False, f"with {length} positions the gradient is NaN or infinite.\n{self.picture()}",
                    "clip the gradient norm, and start the recurrent weights as an orthogonal matrix.",
                    "exploding-gradients", numbers,
                )  # fmt: skip
            if growth >= self.exploded:
                return CheckResult(
                    name, False,
                    f"with {length} positions the gradient at the first one is {growth:.2g} times that at the "
                    f"last: it grows on its way back.\n{self.picture()}",
                    "start the recurrent weights as an orthogonal matrix, use LSTM or GRU, and clip the gradient "
                    "norm.",
                    "exploding-gradients", numbers,
                )  # fmt: skip
            if share < self.at_least:
                return CheckResult(
                    name, False, f"{self._faded(length, share)}\n{self.picture()}", self._fix(length),
                    "vanishing-gradients", numbers,
                )  # fmt: skip
        longest = max(self.gradients.profiles)
        return CheckResult(
            name, True,
            f"with {longest} positions the gradient at the first one is {self.share(longest):.2g} of the largest.",
            numbers=numbers,
        )  # fmt: skip

    def _faded(self, length: int, share: float) -> str:
        reach = self.gradients.reach(length, max(self.at_least, 1e-300))
        pace = self.gradients.positions_a_decade(length)
        seen = (
            f"with {length} positions the gradient at the first one is {share:.2g} of the largest; "
            f"{self.at_least:.2g} is wanted. It reaches {reach} positions back"
        )
        if share == 0 and self._is_cut(length):
            return (
                f"{seen}, and is exactly 0 before them: the prediction does not depend on them. A mask, a "
                "window, or a detach() cuts them off."
            )
        fades = "" if pace is None else f", and falls to a tenth every {pace:.2g} positions"
        return f"{seen}{fades}. With these weights it learns nothing from what stands further back."

    def _is_cut(self, length: int) -> bool:
        """Whether the gradient ends at once, not by becoming too small for its dtype."""
        profile = self.gradients.profiles[length]
        there = profile[profile > 0]
        return bool(there.size and there.min() > 1e-30 and profile[0] == 0) or not there.size

    def _fix(self, length: int) -> str:
        if self._is_cut(length):
            return (
                "check the mask, the window or the receptive field, and where the hidden state is detached; or "
                "read the prediction where the whole sequence is seen (the last position under a causal mask)."
            )
        return (
            "use LSTM or GRU with a forget gate that starts open (bias 1 and more), attention, or the mean over "
            "all positions; or take lengths that the task needs."
        )

    def __str__(self) -> str:
        """Draw the gradient at each position, from the first to the last, on a logarithmic scale."""
        return f"{self.result().message.partition(chr(10))[0]}\n{self.picture()}"

    def picture(self) -> str:
        """Draw a row of bars for each length, as text."""
        width = len(str(max(self.gradients.profiles)))
        lines = [
            f"{length:>{width}} positions |{_bars(profile)}| {self.share(length):.1e} of the largest at the first"
            for length, profile in self.gradients.profiles.items()
        ]
        return "\n".join(
            [*lines, f"first to last position; a full bar is the largest, an empty one 1e-{DECADES:.0f}"]
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the curves to a self-contained HTML page.

        Raises:
            OSError: it cannot be written.
        """
        from diagnostics.report.html.page import document
        from diagnostics.report.whole_file import write_whole
        from diagnostics.text.visible import escaped

        body = f"<h1>Gradient by position</h1><p>{escaped(self.result().message.partition(chr(10))[0])}</p>"
        write_whole(Path(path), document("Gradient by position", body + "".join(self._charts())))

    def _charts(self) -> Iterator[str]:
        from diagnostics.report.html.charts import Axis, line

        for length, profile in self.gradients.profiles.items():
            positions = np.arange(length)
            title = f"Gradient norm by position, {length} positions"
            yield line(title, Axis(0, length - 1), positions, profile.astype(np.float64))


def _bars(profile: Array) -> str:
    """Draw values (length,), each against the largest."""
    largest = float(np.nanmax(profile)) if np.isfinite(profile).any() else 0.0
    columns = np.array_split(profile, min(COLUMNS, len(profile)))
    drawn = ""
    for column in columns:
        value = float(column.max())
        if not math.isfinite(value):
            drawn += "!"
        elif value <= 0 or largest <= 0 or not math.isfinite(largest):
            drawn += BARS[0]
        else:
            height = 1 + math.log10(value / largest) / DECADES
            drawn += BARS[max(0, min(len(BARS) - 1, math.ceil(height * (len(BARS) - 1))))]
    return drawn
