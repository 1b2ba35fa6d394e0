"""The whole loop on every cage: try, fail with the right words, three hints, our solution, recovered; cheats.

It takes hours. `LOOP=12,15 pytest -m "" tests/zoo/learner/test_loop.py` takes some of the cages.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bugs.zoo.keeper.catalogue import Exhibit, load_catalogue
from bugs.zoo.keeper.manifest import ExceptionSignature
from bugs.zoo.learner.checking.check import check
from bugs.zoo.learner.checking.effort import effort_of
from tests.zoo.learner.cheats import cheats
from tests.zoo.learner.repairs import REPAIRS, Repair

ROOT = Path(__file__).resolve().parents[3]
CATALOGUE = load_catalogue(ROOT)
CHOSEN = {id: CATALOGUE[id] for id in os.environ.get("LOOP", ",".join(CATALOGUE)).split(",")}
CHEATS = [
    pytest.param(exhibit, name, id=f"{exhibit.id}-{name}")
    for exhibit in CHOSEN.values()
    for name in cheats(exhibit)
]
pytestmark = [pytest.mark.slow, pytest.mark.exhaustive, pytest.mark.timeout(3600)]


@pytest.fixture
def zoo_of(tmp_path: Path) -> Any:
    """Make a zoo that holds one cage."""

    def make(exhibit: Exhibit) -> Exhibit:
        for parent in ("bugs", "solutions"):
            shutil.copytree(ROOT / parent / exhibit.folder, tmp_path / parent / exhibit.folder)
        return load_catalogue(tmp_path)[exhibit.id]

    return make


def bugs(root: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "bugs", "--root", str(root), *arguments, "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("exhibit", CHOSEN.values(), ids=CHOSEN)
def test_from_the_first_try_to_the_open_cage(exhibit: Exhibit, zoo_of: Any) -> None:
    root = zoo_of(exhibit).root
    code, tried = bugs(root, "try", exhibit.id)
    assert code == 0
    code, failed = bugs(root, "check", exhibit.id)
    assert (code, failed["passed"]) == (1, False)
    wrong = {each["name"]: each["said"] for each in failed["judgements"] if not each["ok"]}
    if isinstance(exhibit.signature, ExceptionSignature):
        assert wrong["run"].startswith(f"It fails as it did: {exhibit.signature.exception}")
    else:
        assert "rules" in wrong
        assert {"metric", "evaluation"} & set(wrong)
    assert any(rule in wrong["rules"] for rule in exhibit.rules)
    for number, hint in enumerate(exhibit.hints, start=1):
        assert bugs(root, "hint", exhibit.id)[1] == {
            "version": 1,
            "exhibit": exhibit.id,
            "number": number,
            "hint": hint,
        }
    shutil.copyfile(exhibit.solution, root / tried["script"])
    code, passed = bugs(root, "check", exhibit.id)
    assert (code, passed["passed"]) == (0, True), passed["judgements"]
    ours = bugs(root, "diff", exhibit.id)[1]
    assert (ours["diff"], bool(ours["why"])) == ([], True)
    state = bugs(root, "progress")[1]["cages"][exhibit.id]
    assert (state["state"], state["checks"], state["hints"]) == ("fixed", 2, 3)


@pytest.mark.parametrize(("exhibit", "name"), CHEATS)
def test_a_cheat_does_not_pass(exhibit: Exhibit, name: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(cheats(exhibit)[name])
    made = check(exhibit, script)
    print("; ".join(f"{each.name}: {each.said}" for each in made.judgements if not each.ok))
    assert not made.passed


@pytest.mark.parametrize(
    "repair", [pytest.param(repair, id=f"{repair.id}-{repair.name}") for repair in REPAIRS if repair.id in CHOSEN]
)
def test_another_right_repair_passes(repair: Repair, tmp_path: Path) -> None:
    exhibit = CATALOGUE[repair.id]
    script = tmp_path / "train.py"
    script.write_text(repair.applied(exhibit.solution.read_text()))
    made = check(exhibit, script)
    assert made.passed, [each for each in made.judgements if not each.ok]


@pytest.mark.parametrize("exhibit", CHOSEN.values(), ids=CHOSEN)
def test_the_effort_in_the_manifest_is_that_of_the_solution(exhibit: Exhibit) -> None:
    assert exhibit.effort is not None
    measured = effort_of(exhibit)
    assert (measured.updates, measured.rows) == (exhibit.effort.updates, exhibit.effort.rows)
    assert set(exhibit.effort.judged) <= set(measured.judged)
