"""Programs that train right, run as they are: nothing is said against them, and their results are the same.

What plain loops look like in which something was or might be misread; see `test_examined` for what `examine` says.
"""

import pytest
import torch

from diagnostics.run.observer import ScriptObserver
from tests.support import healthy
from tests.support.healthy import few_of, load

LEARNED = 0.7  # of the loss before training; most programs reach a tenth of it
PROGRAMS = [path for path in healthy.PROGRAMS if not path.stem.startswith(("keras_", "trainer_"))]
# By program: how many loops with an optimizer it has, where it is not one, and how many of them learn from a loss
# that begins in their own module.
LOOPS = {"script_by_hand": (0, 0), "script_scripted": (0, 0), "script_adversarial": (2, 1)}


def run(path):
    """Load a program again, and train."""
    program = load(path)
    return program.train(*program.build()), torch.rand(3).tolist()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("path", few_of(PROGRAMS), ids=lambda path: path.stem)
def test_program_gets_no_error_and_no_warning_and_the_same_results(path):
    alone = run(path)
    looking = ScriptObserver()
    observed = run(path)
    looking.close()
    assert observed == alone
    metrics, _ = alone
    assert metrics["loss_after"] < LEARNED * metrics["loss_before"]
    assert looking.faults == []
    watched, examined = looking.watched(), looking.examined
    assert (len(watched), len(examined)) == LOOPS.get(path.stem, (1, 1))
    for report in (*examined, *watched):
        assert report.ok, str(report)
        assert report.faults == ()


def test_there_are_loops_of_every_shape_that_a_script_may_have():
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
