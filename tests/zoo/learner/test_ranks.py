"""What several ranks were seen to do is put together as one training."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from bugs.zoo.learner.checking.ranks import RankObservations


def leave(folder: Path, number: int, trained: list[int], **facts: object) -> None:
    """Leave what a rank leaves: the weights are its number."""
    stem = folder / f"launch1-rank{number}"
    rows = {"trained": np.array(trained, np.uint64), "evaluated": np.array([7 + number], np.uint64)}
    np.savez(stem.with_suffix(".npz"), **rows, **({"weight w": np.array([0.5])} if number == 0 else {}))
    plain = {"updates": 9, "models": 1, "examples": len(trained), "whole": True, "replaced": [], "solutions": []}
    stem.with_suffix(".json").write_text(json.dumps(plain | facts))


def test_rows_are_of_all_ranks_and_weights_of_the_first(tmp_path: Path) -> None:
    ranks = RankObservations(tmp_path, tmp_path, tmp_path / "train.py")
    ranks._launched(2)
    leave(tmp_path, 0, [1, 2, 3])
    leave(tmp_path, 1, [3, 4, 8], replaced=["torch.Tensor.argmax"], whole=False)
    found = ranks.close()
    assert found is not None
    facts, arrays = found
    assert (facts["updates"], facts["models"], facts["examples"], facts["rows"]) == (9, 1, 6, 5)
    assert (facts["evaluated"], facts["evaluated_on_trained"]) == (2, 0.5)
    assert (facts["whole"], facts["has_model"], facts["replaced"]) == (False, True, ["torch.Tensor.argmax"])
    assert (arrays["weight w"].tolist(), arrays["trained"].tolist()) == ([0.5], [1, 2, 3, 4, 8])


def test_without_ranks_there_is_nothing(tmp_path: Path) -> None:
    assert RankObservations(tmp_path, tmp_path, tmp_path / "train.py").close() is None
