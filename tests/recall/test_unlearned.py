"""A run that plainly did not learn must never exit with 0, whether or not a rule names the cause."""

import pytest

from bugs.zoo.keeper.warm import WarmProcesses, kind_of
from tests.recall.programs import programs

UNLEARNED = (
    "accumulation_longer_than_an_epoch",
    "keras_labels_shuffled_apart",
    "labels_shuffled_apart",
    "prices_joined_by_a_reset_index",
    "sorted_files_against_unsorted_labels",
    "teacher_that_is_trained_to_agree",
)
"""Programs of which, at the time of writing, no other rule named the cause."""

UNTAUGHT = ("control_with_shuffled_labels", "policy_gradient_bandit", "returns_with_little_signal")
"""Programs with little or nothing to learn, or whose loss says nothing."""

LIMIT_S = 300


@pytest.fixture(scope="module")
def warm():
    processes = WarmProcesses()
    yield processes
    processes.close()


@pytest.mark.parametrize(("name", "code"), [*((name, 1) for name in UNLEARNED), *((name, 0) for name in UNTAUGHT)])
def test_exits_with_1_exactly_if_it_should_have_learned(warm, tmp_path, name, code):
    path = next(program.path for program in programs() if program.name == name)
    arguments = ["run", "--output", "report.json", str(path)]
    ended = warm.diagnose(kind_of(path.read_text(encoding="utf-8")), arguments, tmp_path, LIMIT_S)
    assert ended.returncode == code
