"""Thumbnails of loss curves for the page of symptoms, drawn from the runs of the book's notebooks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nbformat import NotebookNode

from book.panels import CURVE, VERMILION

WIDTH, HEIGHT, MARGIN = 168, 72, 6  # pixels
SWINGS = 1.3  # a loss that ends at so many times its lowest value has risen again


@dataclass(frozen=True)
class Curve:
    """The training loss of an exhibit's broken script.

    Attributes:
        steps: of the weights, rising.
        losses: at these steps, in nats.
        chance: the loss of a constant prediction, nats.
    """

    steps: tuple[float, ...]
    losses: tuple[float, ...]
    chance: float

    @property
    def described(self) -> str:
        """Say in words what the thumbnail shows."""
        course = f"from {self.losses[0]:.2f} to {self.losses[-1]:.2f} in {self.steps[-1]:,.0f} steps"
        if self.losses[-1] > SWINGS * min(self.losses):
            course += f", with a minimum of {min(self.losses):.2f}"
        return f"Training loss {course}; a constant prediction scores {self.chance:.2f}."


def curve_in(notebook: NotebookNode) -> Curve | None:
    """Return the curve that an executed notebook has noted; None if it shows no broken run beside the repaired."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            noted = output.get("data", {}).get(CURVE)
            if noted is not None and len(noted["steps"]) > 1:
                return Curve(tuple(noted["steps"]), tuple(noted["losses"]), float(noted["chance"]))
    return None


def thumbnail(curve: Curve) -> str:
    """Draw a curve as SVG that takes the page's colours: the loss as a line, chance dashed."""
    losses = _finite(curve.losses)
    top = 1.1 * max(*losses, curve.chance)

    def place(step: float, loss: float) -> tuple[float, float]:
        x = MARGIN + (WIDTH - 2 * MARGIN) * step / curve.steps[-1]
        return x, HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * loss / top

    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, curve.steps, losses))
    level = place(0, curve.chance)[1]
    return (
        f'<svg class="thumbnail" role="img" aria-label="{curve.described}" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">'
        f'<path d="M{MARGIN},{MARGIN}V{HEIGHT - MARGIN}H{WIDTH - MARGIN}" fill="none" stroke="currentColor" '
        'stroke-opacity="0.4"/>'
        f'<path d="M{MARGIN},{level:.1f}H{WIDTH - MARGIN}" stroke="{VERMILION}" stroke-dasharray="4 3"/>'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.6"/></svg>'
    )


def _finite(losses: Sequence[float]) -> list[float]:
    """Put the largest finite loss in the place of those that are not."""
    most = max((loss for loss in losses if math.isfinite(loss)), default=0.0)
    return [loss if math.isfinite(loss) else most for loss in losses]
