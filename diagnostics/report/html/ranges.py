"""Draws the activation ranges relative to the limits of their dtype, as a table with bars for the HTML report."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.layers import RangeFacts
from diagnostics.text.join import count_of
from diagnostics.text.nonfinite import LIMITS
from diagnostics.text.visible import escaped

SHOWN = 20  # modules, those nearest to their limit; the others are collapsed
SMALLEST = -4  # power of ten at which the bars begin
NEAR = 0.1  # of the limit: from here on a bar is marked


def ranges_section(ranges: RangeFacts) -> str:
    """Draw the largest finite value of each module; those far from the limit are collapsed."""
    values, steps = _largest(ranges)
    nearness = np.where(np.isnan(values), np.inf, values / ranges.limits)
    order = [int(n) for n in np.argsort(-nearness, kind="stable")]
    shown = sorted(order[:SHOWN])
    more = sorted(order[SHOWN:])
    sampled = count_of(len(ranges.steps), "sampled step")
    wide = any(dtype in ("float32", "float64", "bfloat16") for dtype in ranges.dtypes)
    caption = (
        f"The largest finite absolute value in each module's output, in {sampled}. The bars have a logarithmic "
        f"scale from 10\N{SUPERSCRIPT MINUS}\N{SUPERSCRIPT FOUR} to the largest number of the dtype."
        + (" The vertical line is the largest number of float16, 65,504." if wide else "")
    )
    rest = (
        f"<details><summary>{len(more)} more modules, further from their limits</summary>"
        f"{_table(ranges, values, steps, more)}</details>"
        if more
        else ""
    )
    return f'<p class="soft">{caption}</p>{_table(ranges, values, steps, shown)}{rest}'


def _largest(ranges: RangeFacts) -> tuple[Array, Array]:
    """Return the largest finite value (modules,), NaN where there was none, and its step."""
    values = np.where(np.isfinite(ranges.highest), ranges.highest, np.nan)
    steps = ranges.highest_steps
    for more, at in ((ranges.nearest, ranges.nearest_steps), (ranges.finite, ranges.finite_steps)):
        if more is not None and at is not None:
            values, steps = np.where(np.isnan(values), more, values), np.where(np.isnan(values), at, steps)
    return values, steps


def _table(ranges: RangeFacts, values: Array, steps: Array, which: Sequence[int]) -> str:
    broken = not np.isfinite(ranges.highest).all()
    rows = ""
    for number in which:
        top, limit = float(values[number]), float(ranges.limits[number])
        cells = ["never finite", "", "", ""]
        if not math.isnan(top):
            share = f"{_percent(top / limit)} of {_whole(limit)}"
            cells = [f"{top:.3g}", f"{int(steps[number]):,}", _bar(top, limit), share]
        if broken:
            worst = float(ranges.highest[number])
            kind = "" if math.isfinite(worst) else "NaN" if math.isnan(worst) else "infinite"
            cells.append(f"{kind} in step {int(ranges.highest_steps[number]):,}" if kind else "")
        data = "".join(f"<td>{cell}</td>" for cell in (escaped(ranges.dtypes[number]), *cells))
        rows += f'<tr><th scope="row">{escaped(ranges.modules[number])}</th>{data}</tr>'
    names = ["module", "dtype", "largest", "at step", "up to the limit", "share of the limit"]
    names += ["not finite"] if broken else []
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="largest activations by module"><table><thead>'
        f"<tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "less than 1%"


def _whole(limit: float) -> str:
    return f"{limit:,.0f}" if limit < 1e6 else f"{limit:.2g}"


def _bar(top: float, limit: float) -> str:
    whole = math.log10(limit) - SMALLEST

    def part(value: float) -> float:
        return 100 * min(1.0, max(0.0, (math.log10(value) - SMALLEST) / whole)) if value > 0 else 0.0

    kind = "" if top < NEAR * limit else ' class="near"'
    half = LIMITS["float16"]
    tick = f'<i class="half" style="left:{part(half):.1f}%"></i>' if limit > 10 * half else ""
    return f'<div class="range" aria-hidden="true"><i{kind} style="width:{part(top):.1f}%"></i>{tick}</div>'
