"""Commands, edits and kills in any order: what a learner typed stays in `attempts/`."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.zoo.keeper.conftest import Zoo
from tests.zoo.learner.faults import Faults, Killed, bugs, injected
from tests.zoo.learner.test_failures import no_script as no_script

NAMES = ("04_wrong_label_count", "surprise")
COMMANDS = [
    *(("try", "04"), ("reset", "04", "--yes"), ("hint", "04"), ("check", "04"), ("diff", "04")),
    *(("surprise",), ("surprise", "--new"), ("check", "surprise"), ("progress",)),
]
ODD = ("backups", "progress.json", ".progress.lock", ".04_wrong_label_count.next", *NAMES)


class Sessions(RuleBasedStateMachine):
    """A learner in one zoo, whose power fails now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="bug-zoo-"))
        zoo = Zoo(self.root)
        zoo.cage()
        zoo.cage("05_other", title="Another")
        self.numbers = itertools.count()
        self.typed: set[str] = set()  # and not written over by the learner
        for command, name in zip((("try", "04"), ("surprise",)), NAMES, strict=True):
            assert bugs(self.root, *command) == 0
            self.type(name)

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    def script(self, name: str) -> Path:
        return self.root / "attempts" / name / "train.py"

    def texts(self) -> set[str]:
        files = [path for path in (self.root / "attempts").rglob("*") if path.is_file()]
        return {path.read_text("utf-8") for path in files}

    @rule(name=st.sampled_from(NAMES))
    def type(self, name: str) -> None:
        if (script := self.script(name)).is_file():
            self.typed.discard(script.read_text())
            script.write_text(text := f"typed = {next(self.numbers)}\n")
            self.typed.add(text)

    @rule(name=st.sampled_from(NAMES))
    def put_a_file_beside(self, name: str) -> None:
        if (script := self.script(name)).is_file():
            (script.parent / f"notes{next(self.numbers)}.txt").write_text(text := f"note {next(self.numbers)}\n")
            self.typed.add(text)

    @rule(name=st.sampled_from(ODD))
    def put_a_file_in_the_way_or_take_it_away(self, name: str) -> None:
        place = self.root / "attempts" / name
        if place.is_file():
            self.typed.discard(place.read_text())
            place.unlink()
        elif not place.exists():
            place.write_text(text := f"odd = {next(self.numbers)}\n")
            if not name.startswith("."):
                self.typed.add(text)

    @rule(command=st.sampled_from(COMMANDS))
    def run(self, command: tuple[str, ...]) -> None:
        assert bugs(self.root, *command) in (0, 1, 2)

    @rule(command=st.sampled_from(COMMANDS), at=st.integers(1, 40))
    def run_and_be_killed(self, command: tuple[str, ...], at: int) -> None:
        try:
            with injected(Faults(self.root, at, None)):
                bugs(self.root, *command)
        except Killed:
            pass

    @rule(
        error=st.sampled_from([13, 27, 28]),
        command=st.sampled_from(COMMANDS),
        at=st.integers(1, 40),
        lasting=st.booleans(),
    )
    def run_on_a_bad_disk(self, command: tuple[str, ...], at: int, error: int, lasting: bool) -> None:
        with injected(Faults(self.root, at, error, lasting=lasting)):
            assert bugs(self.root, *command) in (0, 1, 2)

    @invariant()
    def nothing_typed_is_lost(self) -> None:
        assert self.typed - self.texts() == set()


@pytest.mark.usefixtures("no_script")
def test_nothing_typed_is_lost_in_any_order() -> None:
    bounded = settings(
        max_examples=30,
        stateful_step_count=15,
        deadline=None,
        database=None,
        phases=[Phase.generate],  # making a failure smaller takes minutes
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Sessions, settings=bounded)
