"""Every script of the zoo is cut at its training."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bugs.zoo.keeper.catalogue import Exhibit, load_catalogue
from bugs.zoo.learner.checking.halves import halves

CATALOGUE = load_catalogue(Path(__file__).resolve().parents[3])


@pytest.mark.parametrize("exhibit", CATALOGUE.values(), ids=CATALOGUE)
@pytest.mark.parametrize("solution", [False, True], ids=["broken", "solution"])
def test_each_script_is_cut_at_the_statement_that_trains(exhibit: Exhibit, solution: bool) -> None:
    text = (exhibit.solution if solution else exhibit.script).read_text()
    cut = halves(text, "train.py")
    assert cut is not None
    names = cut.before.co_names
    assert {"train", "fit", "step", "backward"}.isdisjoint(set(names) - {"train"})
    tree = ast.parse(text)
    left_out = ast.unparse(tree.body[len(tree.body) - len(cut.after) - 1])
    assert any(call in left_out for call in ("trainer.train()", "model.fit(", "optimizer.step()", "mp.spawn("))
    # What ranks evaluate, they evaluate in their own function: an exam of the exhibit's own stands for it.
    assert exhibit.exam is not None or "print" in {name for code in cut.after for name in code.co_names}


def test_the_mode_of_a_module_is_no_training() -> None:
    cut = halves("model.train()\nfor batch in batches:\n    optimizer.step()\nprint(1)\n", "train.py")
    assert cut is not None
    assert cut.before.co_names == ("model", "train")
    assert len(cut.after) == 1


def test_a_script_that_trains_in_a_function_is_not_cut() -> None:
    assert halves("def main():\n    trainer.train()\n\nmain()\n", "train.py") is None


def test_a_script_is_cut_where_it_spawns_its_ranks() -> None:
    text = "def train(rank):\n    optimizer.step()\n\nif __name__ == '__main__':\n    mp.spawn(train, nprocs=2)\n"
    cut = halves(text, "train.py")
    assert cut is not None
    assert (cut.before.co_names, cut.after) == (("train",), ())
