"""Finds targets that the trained weights compute and that are differentiated with the answers, in a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from diagnostics.facts.loss import BootstrappedTarget

ERRORS = ("MseLossBackward0", "SmoothL1LossBackward0", "HuberLossBackward0", "SubBackward0")
LAID_OUT = (
    *("SqueezeBackward0", "SqueezeBackward1", "UnsqueezeBackward0", "ViewBackward0", "UnsafeViewBackward0"),
    *("ReshapeAliasBackward0", "ExpandBackward0", "ToCopyBackward0"),
)
CHOSEN = ("GatherBackward0", "IndexBackward0")  # one answer of each row: that to the action taken
BEST = ("MaxBackward0", "AmaxBackward0")
MOST = 16  # operations of an expression
MOST_NODES = 10_000  # of a graph


def bootstrapped_target(nodes: Iterable[Any]) -> BootstrappedTarget | None:
    """Return the target of chosen answers that is made of answers of the same weights, as in Q-learning.

    It is a product and a sum with constants, a discount and a reward, of the best or chosen answer of each row.
    None where no weights are common to both sides: those of a target network get gradients, and no steps.
    """
    for node in nodes:
        if type(node).__name__ not in ERRORS:
            continue
        sides = [given for given, _ in node.next_functions]
        if len(sides) < 2 or None in sides[:2]:
            continue
        for answer, target in (sides[:2], sides[1::-1]):
            (chosen, changed), (source, factors) = _source(answer), _source(target)
            if type(chosen).__name__ not in CHOSEN or changed or "MulBackward0" not in factors:
                continue
            name = type(source).__name__
            if name not in (*BEST, "GatherBackward0") or "AddBackward0" not in factors:
                continue
            common = _leaves(answer) & _leaves(target)
            if common:
                return BootstrappedTarget(name in BEST, len(common))
    return None


def _source(node: Any) -> tuple[Any, set[str]]:
    """Follow an expression of one operand and constants to what it is made of; with its sums and products."""
    factors = set[str]()
    for _ in range(MOST):
        name = type(node).__name__
        if name not in (*LAID_OUT, "AddBackward0", "MulBackward0"):
            break
        operands = [given for given, _ in node.next_functions if given is not None]
        if len(operands) != 1:
            break
        if name not in LAID_OUT:
            factors.add(name)
        node = operands[0]
    return node, factors


def _leaves(node: Any) -> set[int]:
    return {id(variable) for one in _below(node) if (variable := getattr(one, "variable", None)) is not None}


def _below(node: Any) -> Iterator[Any]:
    waiting, seen = [node], set[Any]()
    while waiting and len(seen) < MOST_NODES:
        one = waiting.pop()
        if one is not None and one not in seen:
            seen.add(one)
            yield one
            waiting += [following for following, _ in one.next_functions]
