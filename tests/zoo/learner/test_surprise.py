"""A surprise does not say which cage it is from, and does what the cage's script does."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from bugs.zoo.keeper.catalogue import Exhibit, load_catalogue
from bugs.zoo.learner.surprise import VARIANTS, deal, dealt_cage, digest, disguised

CATALOGUE = load_catalogue(Path(__file__).resolve().parents[3])
CAGES = list(CATALOGUE.values())


def shape(text: str) -> str:
    """A script without its names and its docstring."""
    tree = ast.parse(text)
    tree.body.pop(0)
    for node in ast.walk(tree):
        for name in ("id", "name"):
            if hasattr(node, name):
                setattr(node, name, "_")
    return ast.dump(tree)


@pytest.mark.parametrize("exhibit", CAGES, ids=CATALOGUE)
def test_it_is_the_cages_script_under_other_names(exhibit: Exhibit) -> None:
    original = exhibit.script.read_text()
    for seed in range(3):
        text = disguised(exhibit, random.Random(seed))
        assert shape(text) == shape(original)
        assert exhibit.folder not in text
        assert "$ python attempts/surprise/train.py" in text
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        before = {node.id for node in ast.walk(ast.parse(original)) if isinstance(node, ast.Name)}
        assert len(names) == len(before)  # no two have become one
        assert names - before <= {other for others in VARIANTS.values() for other in others}


def test_most_scripts_change_their_names() -> None:
    changed = [
        exhibit.id
        for exhibit in CAGES
        if any(word in disguised(exhibit, random.Random(1)) for others in VARIANTS.values() for word in others)
    ]
    assert len(changed) >= 15


def test_the_digest_tells_which_it_was_only_to_who_tries_all() -> None:
    remembered = digest(CATALOGUE["12"], "salt")
    assert "12" not in remembered.split(":")[0]
    assert dealt_cage(CAGES, remembered) is CATALOGUE["12"]
    assert dealt_cage(CAGES, "") is None
    assert digest(CATALOGUE["12"], "other") != remembered


def test_what_is_solved_is_dealt_again_only_when_all_are() -> None:
    others = [exhibit.id for exhibit in CAGES if exhibit.id != "12"]
    assert {deal(CAGES, others, random.Random(seed)).id for seed in range(5)} == {"12"}
    assert len({deal(CAGES, CATALOGUE, random.Random(seed)).id for seed in range(20)}) > 5
    with pytest.raises(ValueError, match="no exhibits"):
        deal([], (), random.Random(0))
