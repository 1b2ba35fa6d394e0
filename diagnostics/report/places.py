"""Gives findings the line of the script that they are about, where the rule does not know it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from diagnostics.engine.finding import Finding, Stage
from diagnostics.engine.rule import Rule
from diagnostics.facts.where import Places

PLACES: Mapping[Stage, tuple[str, ...]] = {
    "data": ("loader", "training", "model"),
    "batch": ("loader", "training", "model"),
    "model": ("model", "training"),
    "gradient": ("backward", "training"),
    "numerics": ("loss", "backward", "training"),
    "optimizer": ("optimizer", "training"),
}
"""By stage, attributes of `Places`, the likeliest first. A finding of another stage is about no single line."""

OF_LOSSES = ("loss", "backward", "training")
LOSSES = ".model.loss."  # the folder of the rules about losses, which are of the stage "model"


def located(finding: Finding, places: Places, rule: Rule | None) -> Finding:
    """Return a finding of a training with the line that it is about, if it has none and that line is known.

    Args:
        finding: of the training.
        places: of the training.
        rule: that found it, if it is known.
    """
    if finding.where is not None:
        return finding
    of_loss = rule is not None and LOSSES in type(rule).__module__
    names = OF_LOSSES if of_loss else PLACES.get(finding.stage, ())
    known = (getattr(places, name) for name in names)
    return replace(finding, where=next((where for where in known if where is not None), None))
