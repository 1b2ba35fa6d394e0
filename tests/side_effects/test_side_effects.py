"""`diagnose run` changes nothing of a healthy script, and reports no error and no warning on it.

To add a program that `diagnose run` must leave alone, put it into `tests/healthy/`, with `build` and `train`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bugs.zoo.keeper.catalogue import load_catalogue
from tests.side_effects.harness import compare, compare_program
from tests.support import healthy

ROOT = Path(__file__).resolve().parents[2]
QUICK = {
    "mlp_classifier",
    "keras_softmax",
}  # a pair of runs takes half a minute; `nox -s stacks` has eight Trainers
PROGRAMS = [  # those in a plain PyTorch loop are compared in one process, too: tests/healthy/test_observed.py
    pytest.param(path, id=path.stem, marks=() if path.stem in QUICK else pytest.mark.exhaustive)
    for path in healthy.PROGRAMS
]
RANKS = [
    pytest.param(path, id=path.stem, marks=() if path.stem == "trainer_on_two_ranks" else pytest.mark.exhaustive)
    for path in sorted((ROOT / "tests/recall/healthy").glob("**/*.py"))
    if "# ranks: " in path.read_text(encoding="utf-8")
]
CATALOGUE = load_catalogue(ROOT)
LEARNED = 0.7  # of the loss before training; most programs reach a tenth of it

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("path", PROGRAMS)
def test_healthy_program_learns_and_is_left_alone(path: Path) -> None:
    comparison = compare_program(path)
    assert comparison.plain.exit_code == 0, comparison.plain.stderr
    before, after = (
        float.fromhex(comparison.plain.record[f"metrics['{name}']"]) for name in ("loss_before", "loss_after")
    )
    assert after < LEARNED * before
    assert comparison.differences == []
    assert comparison.alarms == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("id", CATALOGUE)
def test_solution_is_left_alone(id: str) -> None:
    exhibit = CATALOGUE[id]
    # What runs out of memory runs out of less of it beside an observer; oneDNN's kernels may crash on the way.
    environment = {"TF_ENABLE_ONEDNN_OPTS": "0"} if exhibit.symptom == "exhausts" else {}
    comparison = compare(exhibit.solution, environment={"ZOO_SEED": "0", **environment})
    assert comparison.plain.exit_code == 0, comparison.plain.stderr
    assert comparison.differences == []
    assert comparison.alarms == []


@pytest.mark.parametrize("ranks", [2, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("path", RANKS)
def test_program_of_several_ranks_is_left_alone(path: Path, ranks: int) -> None:
    comparison = compare(path, ranks=ranks)
    assert comparison.plain.exit_code == 0, comparison.plain.stderr
    assert len(comparison.observed.reports) == ranks
    assert comparison.differences == []
    assert comparison.alarms == []
