"""Which bad patterns follow from which: a report tells the cause, and lists under it what came of it.

The table holds what follows at once; `follows` knows that a consequence has consequences of its own. Only what
explains another finding wholly stands here: a doubtful pair is better told as two findings.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from .finding import Finding

# The loss does not fall, and the model has nothing to say. Almost every silent bug ends so.
_NO_LEARNING = ("loss-plateau", "constant-predictions", "cannot-overfit-one-batch")
_NAN = ("non-finite-activations", "non-finite-loss", "non-finite-gradients")
_TOO_LARGE_STEPS = ("exploding-gradients", "loss-divergence", "loss-oscillation", *_NO_LEARNING, *_NAN)

LEADS_TO: Final[Mapping[str, tuple[str, ...]]] = {
    # data and batch
    "non-finite-inputs": (*_NAN, *_NO_LEARNING),
    "unscaled-inputs": ("initial-loss-off", "saturated-activations", "dead-units", *_TOO_LARGE_STEPS),
    "constant-inputs": ("ignores-input", *_NO_LEARNING),
    "single-class-labels": ("constant-predictions", "class-imbalance", "unused-classes"),
    "class-imbalance": ("constant-predictions",),
    "sorted-by-label": ("loss-oscillation", "constant-predictions"),
    "unstable-batch": ("loss-divergence", "loss-oscillation", "ragged-batch", "truncated-inputs"),
    "repeated-batch": ("overfitting", "constant-predictions"),
    # model
    "labels-out-of-range": ("asynchronous-error", "initial-loss-off", *_NO_LEARNING, *_NAN),
    "token-ids-out-of-range": ("asynchronous-error", *_NAN),
    "probabilities-as-logits": ("initial-loss-off", "learning-rate-too-low", "vanishing-gradients", *_NO_LEARNING),
    "logits-as-probabilities": ("initial-loss-off", *_TOO_LARGE_STEPS),
    "broadcast-loss": _NO_LEARNING,
    "ignores-input": _NO_LEARNING,
    "dead-units": ("vanishing-gradients", "unchanged-parameters", *_NO_LEARNING),
    "saturated-activations": ("vanishing-gradients", *_NO_LEARNING),
    "symmetric-initialization": _NO_LEARNING,
    # gradient and numerics
    "no-gradient": ("unreached-parameters", "unchanged-parameters", *_NO_LEARNING),
    "unreached-parameters": ("unchanged-parameters", *_NO_LEARNING),
    "vanishing-gradients": ("learning-rate-too-low", "unchanged-parameters", *_NO_LEARNING),
    "exploding-gradients": ("loss-divergence", "loss-oscillation", *_NAN),
    "gradients-not-zeroed": ("learning-rate-too-high", *_TOO_LARGE_STEPS),
    "half-precision-overflow": (*_NAN, *_NO_LEARNING),
    "half-precision-underflow": ("vanishing-gradients", "unchanged-parameters", *_NO_LEARNING),
    "non-finite-activations": ("non-finite-loss", "non-finite-gradients", *_NO_LEARNING),
    "non-finite-loss": ("non-finite-gradients", "unchanged-parameters", *_NO_LEARNING),
    "non-finite-gradients": ("unchanged-parameters", *_NO_LEARNING),
    # optimizer
    "default-learning-rate": ("learning-rate-too-high", "learning-rate-too-low"),
    "learning-rate-too-high": ("dead-units", *_TOO_LARGE_STEPS),
    "learning-rate-too-low": ("unchanged-parameters", *_NO_LEARNING),
    "optimizer-misses-parameters": ("unchanged-parameters", "learning-rate-too-low", *_NO_LEARNING),
    "unchanged-parameters": _NO_LEARNING,
    "loss-divergence": ("constant-predictions",),
    "loss-plateau": ("constant-predictions", "cannot-overfit-one-batch"),
    # memory
    "growing-memory": ("out-of-memory",),
    "tensorflow-holds-gpu": ("out-of-memory",),
    "crowded-gpu": ("out-of-memory",),
}


@functools.cache
def _all_of(cause: str) -> frozenset[str]:
    found: set[str] = set()
    waiting = [cause]
    while waiting:
        new = set(LEADS_TO.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return frozenset(found - {cause})


def follows(rule: str, cause: str) -> bool:
    """Whether what `rule` finds follows from what `cause` finds, at once or by steps between.

    Where two lead to each other, neither follows: they are told as two.
    """
    return rule in _all_of(cause) and cause not in _all_of(rule)


def explains(cause: Finding, finding: Finding) -> bool:
    """Whether one finding follows from another of the same training, as far as what was measured allows it."""
    if not follows(finding.rule, cause.rule):
        return False
    if (cause.rule, finding.rule) == ("growing-memory", "out-of-memory"):
        return _ran_full(cause.evidence, finding.evidence)
    return True


def _ran_full(growth: Mapping[str, object], end: Mapping[str, object]) -> bool:
    """Whether the memory that ran out is the one that grew, by what would have been enough for the request.

    Where it is known what is kept, the growth is not measured: then it goes on until the memory is full.
    """
    grew, tried = growth.get("grew_bytes"), end.get("tried_bytes")
    if not isinstance(grew, int | float):
        return True
    same = (growth.get("memory_of") == "process") == (end.get("device") == "CPU")
    return same and (not isinstance(tried, int | float) or grew >= tried)
