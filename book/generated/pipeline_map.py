"""The picture that every chapter opens with: the stations of a training pipeline, and which it is about."""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping

from book.builder.outline import STATIONS

LIT = "#0072B2"  # Okabe and Ito's blue: white on it can be read in a light and in a dark page
WIDTH, HEIGHT, GAP = 94, 40, 14  # of a box, in units of the drawing; the labels are 14 high
LOWER = 84  # where the second row begins
# Column and row of each station. The second row goes back, because a step is followed by the next batch.
PLACES = {
    "dataset": (0, 0),
    "batch": (1, 0),
    "forward": (2, 0),
    "loss": (3, 0),
    "backward": (3, 1),
    "step": (2, 1),
    "evaluation": (0, 1),
}


def pipeline_map(lit: Collection[str], links: Mapping[str, str]) -> str:
    """Return the map as HTML: one inline SVG, whose colours `zoo.css` adapts to the page's theme.

    Args:
        lit: stations to be coloured, of `STATIONS`.
        links: address of the page about a station, by station; one without an address is no link.
    """
    boxes = "\n".join(_box(station, station in lit, links.get(station)) for station in STATIONS)
    width, height = 4 * WIDTH + 3 * GAP + 2, LOWER + HEIGHT + 2
    return f"""<figure class="pipeline-map">
<svg viewBox="0 0 {width} {height}" role="group" aria-label="{described(lit)}" xmlns="http://www.w3.org/2000/svg">
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">
<path d="M0 0 8 4 0 8z" class="tip" fill="#666666"/></marker></defs>
<g class="arrows" stroke="#666666" stroke-width="1.5" fill="none">
{"".join(f'<path d="{path}" marker-end="url(#tip)"/>' for path in _arrows())}
</g>
{boxes}
</svg>
</figure>"""


def described(lit: Collection[str]) -> str:
    """Say in words what the map shows."""
    shown = [station for station in STATIONS if station in lit]
    about = ", ".join(shown) if 0 < len(shown) < len(STATIONS) else ("all of it" if shown else "none of it")
    return (
        "The training pipeline: dataset, batch, forward, loss, backward, step, then the next batch, and finally "
        f"evaluation. This page is about: {about}."
    )


def _box(station: str, lit: bool, link: str | None) -> str:
    left, top = _corner(station)
    fill, ink = (LIT, "#ffffff") if lit else ("#ffffff", "#222222")
    box = (
        f'<g class="station{" lit" if lit else ""}">'
        f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{fill}" stroke="#666666"/>'
        f'<text x="{left + WIDTH / 2:g}" y="{top + HEIGHT / 2 + 5:g}" text-anchor="middle" font-size="14" '
        f'fill="{ink}" font-family="sans-serif">{station}</text></g>'
    )
    return f'<a href="{html.escape(link)}">{box}</a>' if link else box


def _corner(station: str) -> tuple[int, int]:
    column, row = PLACES[station]
    return column * (WIDTH + GAP) + 1, row * LOWER + 1


def _arrows() -> list[str]:
    """Return the lines between the boxes, as paths of SVG."""
    upper, lower = 1 + HEIGHT // 2, LOWER + 1 + HEIGHT // 2
    column = WIDTH + GAP
    ahead = [f"M{i * column + WIDTH + 2} {upper}H{(i + 1) * column}" for i in range(3)]
    middle = column + 1 + WIDTH // 2  # of the column in which no station stands below
    return [
        *ahead,
        f"M{3 * column + 1 + WIDTH // 2} {HEIGHT + 2}V{LOWER - 1}",  # loss to backward
        f"M{3 * column} {lower}H{2 * column + WIDTH + 3}",  # backward to step
        f"M{2 * column} {lower}H{middle}V{HEIGHT + 4}",  # step to the next batch
        f"M{middle} {lower}H{WIDTH + 4}",  # and, in the end, to the evaluation
    ]
