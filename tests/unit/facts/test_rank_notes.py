"""What a rank notes comes back from JSON as it was."""

import json

import numpy as np

from diagnostics import Report
from diagnostics.facts.ranks.notes import ClippedNorm, Iteration, RankNotes
from diagnostics.facts.ranks.replicas import Sample
from diagnostics.facts.ranks.stall import StalledRank
from diagnostics.facts.where import Where

FLOATS = tuple(float(value) for value in np.float32([0.1, -3.4028235e38, 1e-45, 1 / 3]))
NOTES = RankNotes(
    1, 4, "node-b", "Net",
    samples={0: Sample(17, {"0.weight": (0.5, -1024.25, float("inf"))}, {"torch": (1, 2)}), 8: Sample(None)},
    iterations=(Iteration(8, True, 1, 1, 256, (0, 3), 99), Iteration(2, False)),
    batches=10, backward_passes=11, joined=True, clipped={2: ClippedNorm(2.5, 1.0)}, exit_code=1, error="no",
    stalled=StalledRank(
        1, "node-b", 7, 3, 40.0, 5, "all_reduce", (0, 1), ("float32 [3]",), Where("train.py", 3, "main"),
        "x", "y", ("z",), (4, 4), 2,
    ),
)  # fmt: skip


def test_all_is_read_again():
    assert RankNotes.from_dict(json.loads(json.dumps(NOTES.as_dict()))) == NOTES


def test_a_norm_without_bounds_passes_through_a_report():
    notes = RankNotes(0, 2, clipped={1: ClippedNorm(float("inf"), 1.0)})
    written = json.loads(Report("ran", rank=notes).to_json())
    assert RankNotes.from_dict(written["rank"]) == notes


def test_nothing_noted_is_read_again():
    assert RankNotes.from_dict(json.loads(json.dumps(RankNotes(0, 2).as_dict()))) == RankNotes(0, 2)


def test_a_float32_keeps_all_its_digits():
    written = RankNotes(0, 2, samples={0: Sample(None, {"0.weight": FLOATS})}).as_dict()
    (read,) = RankNotes.from_dict(written).samples[0].weights.values()
    assert np.float32(read).tobytes() == np.float32(FLOATS).tobytes()
