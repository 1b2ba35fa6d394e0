"""A number that a mystery prints without computing it is found, and no sound script is blamed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bugs.zoo.learner.checking.computed import written_in
from tests.zoo.learner.test_mysteries import MYSTERIES, our_fix

ORIGINAL = '''\
"""Train.

It once printed accuracy=0.2.
"""

import torch

EPOCHS = 3
for epoch in range(EPOCHS):
    accuracy = torch.rand(()) + epoch
print(f"epochs={EPOCHS}")
print(f"accuracy={accuracy:.3f}")
'''
LINE = 'print(f"accuracy={accuracy:.3f}")'


@pytest.mark.parametrize(
    "instead",
    [
        'print("accuracy=0.968")',
        'print(f"accuracy=0.968")',
        'print(f"accuracy={0.968:.3f}")',
        'best = 0.968; score = best; print(f"accuracy={score:.3f}")',
        'print("accuracy=%s" % accuracy if False else "accuracy=.968")',
    ],
)
def test_a_constant_is_found(instead: str) -> None:
    assert written_in(ORIGINAL.replace(LINE, instead), ORIGINAL) == ("accuracy", 12)


@pytest.mark.parametrize(
    "instead",
    [
        LINE,
        'print("accuracy=" + format(accuracy.item(), ".3f"))',
        'print("accuracy={:.3f}".format(accuracy))',
        'share = 0; share += accuracy; print(f"accuracy={share:.3f}")',
        'shares = {}; shares[0] = accuracy; print(f"accuracy={shares[0]:.3f}")',
        'share = 0\nfor share in [accuracy]:\n    print(f"accuracy={share:.3f}")',
        'def measured(): return accuracy\nprint(f"accuracy={measured():.3f}")',
    ],
)
def test_a_computed_number_is_not(instead: str) -> None:
    assert written_in(ORIGINAL.replace(LINE, instead), ORIGINAL) is None


@pytest.mark.parametrize("script", MYSTERIES, ids=lambda script: script.stem)
def test_no_mystery_and_no_fix_of_ours_is_blamed(script: Path) -> None:
    original = script.read_text("utf-8")
    assert written_in(original, original) is None
    assert written_in(our_fix(script), original) is None
