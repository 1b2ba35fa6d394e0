"""Draws for the HTML report what a fixed batch, the layers and their ranges looked like during a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.layers import RangeFacts
from diagnostics.facts.over_time import FixedBatchFacts, Histogram, LayerHistograms
from diagnostics.text.join import count_of
from diagnostics.text.nonfinite import LIMITS
from diagnostics.text.visible import escaped

COLUMNS = 5  # looks at the batch that are shown, the first and the last among them
SHOWN = 8  # layers; the others are collapsed
SIGNS = {True: " \N{CHECK MARK}", False: " \N{MULTIPLICATION SIGN}", None: ""}
MODULES = 20  # modules, those nearest to their limit; the others are collapsed
SMALLEST = -4  # power of ten at which the bars begin
NEAR = 0.1  # of the limit: from here on a bar is marked


def fixed_batch_section(facts: FixedBatchFacts) -> str:
    """Return the predictions for each example, from look to look, below the loss of the batch."""
    places = sorted({round(place) for place in np.linspace(0, len(facts.looks) - 1, COLUMNS)})
    looks = [facts.looks[place] for place in places]
    names = ["input", *(["target"] if facts.targets else []), *(_after(look.step) for look in looks)]
    head = "".join(f'<th scope="col">{name}</th>' for name in ("", *names))
    rows = ""
    if any(look.loss is not None for look in looks):
        losses = "".join(f"<td>{'' if look.loss is None else f'{look.loss:.4g}'}</td>" for look in looks)
        rows += f'<tr><th scope="row">loss</th><td></td>{"<td></td>" if facts.targets else ""}{losses}</tr>'
    for number, text in enumerate(facts.inputs):
        cells = [text, *([facts.targets[number]] if facts.targets else [])]
        cells += [look.predictions[number] + SIGNS[look.right[number]] for look in looks]
        data = "".join(f"<td>{escaped(cell)}</td>" for cell in cells)
        rows += f'<tr><th scope="row">{number}</th>{data}</tr>'
    left_out = len(facts.looks) - len(looks)
    caption = f"The first {len(facts.inputs)} of {count_of(facts.size, 'example')}, in evaluation mode."
    caption += f" {count_of(left_out, 'look')} between these are left out." if left_out else ""
    return f'<p class="soft">{caption}</p>{_table("predictions for a fixed batch over time", head, rows)}'


def histograms_section(histograms: Sequence[LayerHistograms]) -> str:
    """Return a row for each layer: the spread of its weights and its gradients, from look to look."""
    layers = list(dict.fromkeys(name for one in histograms for name in one.weights))
    steps = ", ".join(f"{one.step:,}" for one in histograms)
    caption = (
        f"From left to right, before the steps {steps}: the median, and the bands that hold the middle 50% and "
        "90% of the values. Each drawing has its own scale, given beside it."
    )
    shown = _layers(histograms, layers[:SHOWN])
    more = layers[SHOWN:]
    if more:
        summary = f"<summary>{count_of(len(more), 'more layer')}</summary>"
        shown += f"<details>{summary}{_layers(histograms, more)}</details>"
    return f'<p class="soft">{caption}</p>{shown}'


def _layers(histograms: Sequence[LayerHistograms], layers: Sequence[str]) -> str:
    rows = ""
    for layer in layers:
        cells = ""
        for kind, known in (
            ("weights", [one.weights for one in histograms]),
            ("gradients", [one.gradients for one in histograms]),
        ):
            cells += _cell(f"{kind} of {layer}", layer, known)
        rows += f'<tr><th scope="row">{escaped(layer)}</th>{cells}</tr>'
    head = "".join(f'<th scope="col">{name}</th>' for name in ("layer", "weights", "", "gradients", ""))
    return _table("weights and gradients by layer over time", head, rows)


def _cell(title: str, layer: str, known: Sequence[Mapping[str, Histogram]]) -> str:
    there = [(place, one[layer]) for place, one in enumerate(known) if layer in one]
    if not there:
        return "<td></td><td>none</td>"
    spread = np.stack([histogram.quantiles for _, histogram in there])
    x = 300 * (np.array([place for place, _ in there]) + 0.5) / len(known)
    low, high = float(spread.min()), float(spread.max())
    y = 57 - 54 * (spread - low) / ((high - low) or 1.0)
    broken = sum(histogram.not_finite for _, histogram in there)
    note = f"{low:.3g} to {high:.3g}" + (f"; {count_of(broken, 'value')} not finite" if broken else "")
    drawn = "".join(
        f'<polygon class="band" points="{_points(x, y[:, upper])} {_points(x[::-1], y[::-1, lower])}"/>'
        for lower, upper in ((0, 4), (1, 3))
    )
    drawn += f'<polyline class="line" points="{_points(x, y[:, 2])}"/>'
    return (
        f'<td><svg viewBox="0 0 300 60" width="200" height="40" preserveAspectRatio="none" role="img" '
        f'aria-label="{escaped(title)}: {note}">{drawn}</svg></td><td>{note}</td>'
    )


def _points(x: Array, y: Array) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _after(step: int) -> str:
    return f"after {count_of(step, 'step')}" if step else "at the start"


def _table(name: str, head: str, rows: str) -> str:
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def ranges_section(ranges: RangeFacts) -> str:
    """Draw the largest finite value of each module; those far from the limit are collapsed."""
    values, steps = _largest(ranges)
    nearness = np.where(np.isnan(values), np.inf, values / ranges.limits)
    order = [int(n) for n in np.argsort(-nearness, kind="stable")]
    shown = sorted(order[:MODULES])
    more = sorted(order[MODULES:])
    sampled = count_of(len(ranges.steps), "sampled step")
    wide = any(dtype in ("float32", "float64", "bfloat16") for dtype in ranges.dtypes)
    caption = (
        f"The largest finite absolute value in each module's output, in {sampled}. The bars have a logarithmic "
        f"scale from 10\N{SUPERSCRIPT MINUS}\N{SUPERSCRIPT FOUR} to the largest number of the dtype."
        + (" The vertical line is the largest number of float16, 65,504." if wide else "")
    )
    rest = (
        f"<details><summary>{len(more)} more modules, further from their limits</summary>"
        f"{_range_table(ranges, values, steps, more)}</details>"
        if more
        else ""
    )
    return f'<p class="soft">{caption}</p>{_range_table(ranges, values, steps, shown)}{rest}'


def _largest(ranges: RangeFacts) -> tuple[Array, Array]:
    """Return the largest finite value (modules,), NaN where there was none, and its step."""
    values = np.where(np.isfinite(ranges.highest), ranges.highest, np.nan)
    steps = ranges.highest_steps
    for more, at in ((ranges.nearest, ranges.nearest_steps), (ranges.finite, ranges.finite_steps)):
        if more is not None and at is not None:
            values, steps = np.where(np.isnan(values), more, values), np.where(np.isnan(values), at, steps)
    return values, steps


def _range_table(ranges: RangeFacts, values: Array, steps: Array, which: Sequence[int]) -> str:
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
