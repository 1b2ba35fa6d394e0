"""The programs of test_loop.py, which takes hours, are there for every exhibit and are what they say."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bugs.zoo.keeper.catalogue import Exhibit, load_catalogue
from tests.zoo.learner.cheats import cheats
from tests.zoo.learner.repairs import REPAIRS, Repair

CATALOGUE = load_catalogue(Path(__file__).resolve().parents[3])


def code(text: str) -> str:
    """The program without its comments and blank lines."""
    return ast.unparse(ast.parse(text))


@pytest.mark.parametrize("exhibit", CATALOGUE.values(), ids=CATALOGUE)
def test_at_least_eight_cheats_that_are_programs_and_no_repair(exhibit: Exhibit) -> None:
    made = {name: code(text) for name, text in cheats(exhibit).items()}
    assert len(made) >= 8
    assert len(set(made.values())) == len(made)
    assert code(exhibit.solution.read_text()) not in made.values()
    assert code(exhibit.script.read_text()) not in made.values()


@pytest.mark.parametrize("exhibit", CATALOGUE.values(), ids=CATALOGUE)
def test_every_exhibit_says_what_its_training_amounts_to(exhibit: Exhibit) -> None:
    assert exhibit.effort is not None, "not measured yet: python -m bugs.zoo.learner.checking.effort prints it"


@pytest.mark.parametrize("repair", REPAIRS, ids=lambda repair: f"{repair.id}-{repair.name}")
def test_another_repair_is_another_program_than_ours(repair: Repair) -> None:
    exhibit = CATALOGUE[repair.id]
    solution = exhibit.solution.read_text()
    applied = code(repair.applied(solution))
    assert applied not in (code(solution), code(exhibit.script.read_text()))


def test_two_exhibits_have_two_more_right_repairs_each() -> None:
    assert all(sum(repair.id == id for repair in REPAIRS) >= 2 for id in ("06", "09"))
