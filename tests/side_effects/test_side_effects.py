"""`diagnose run` changes nothing of a healthy script, and reports no error and no warning on it.

To add a program that `diagnose run` must leave alone, put it into `tests/healthy/`, with `build` and `train`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bugs.keeper.catalogue import load_catalogue
from tests.side_effects.harness import compare, compare_program

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "tests" / "healthy").glob("*.py"))
CATALOGUE = load_catalogue(ROOT)
LEARNED = 0.7  # of the loss before training; most programs reach a tenth of it
# By program: how many of its trainings are seen, where it is not one, and how many are examined: a loss may begin
# outside of every module.
TRAININGS = {"script_by_hand": (0, 0), "script_scripted": (0, 0), "script_adversarial": (2, 1)}

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_healthy_program_learns_and_is_left_alone(path: Path) -> None:
    comparison = compare_program(path)
    assert comparison.plain.exit_code == 0, comparison.plain.stderr
    before, after = (
        float.fromhex(comparison.plain.record[f"metrics['{name}']"]) for name in ("loss_before", "loss_after")
    )
    assert after < LEARNED * before
    assert comparison.differences == []
    assert comparison.alarms == []
    assert trainings(comparison.observed.report) == TRAININGS.get(path.stem, (1, 1))


def trainings(report: dict[str, Any]) -> tuple[int, int]:
    """Return how many trainings the report of a script has watched, and how many it has examined."""
    stages = {stage["name"]: stage["detail"] for stage in report["stages"]}
    lines = [detail for name, detail in stages.items() if name.startswith("training ")]
    if lines:
        return sum("watched" in line for line in lines), sum("examined" in line for line in lines)
    return int("loss" in stages), int("forward and loss" in stages)


def test_there_are_programs_of_every_shape_that_a_loop_may_have() -> None:
    shapes = {path.stem for path in PROGRAMS}
    assert {
        "accumulation",
        "script_actor_critic",
        "script_adversarial",
        "script_by_hand",
        "script_closure",
        "script_compiled",
        "script_features",
        "script_pairs",
        "script_policy_gradient",
        "script_scripted",
        "watched_two_networks",
        "script_two_tasks",
        "script_variational",
    } <= shapes


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
