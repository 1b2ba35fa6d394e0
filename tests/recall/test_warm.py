"""A program that a server's fork runs must get the report that it gets in an interpreter of its own."""

import pytest

from bugs.zoo.keeper.warm import kind_of
from tests.recall.measure import run, run_all
from tests.recall.programs import programs


@pytest.mark.parametrize(
    "name",
    [pytest.param("blocks_in_a_plain_list", marks=pytest.mark.exhaustive), "keras_softmax_over_axis_zero"],
)
def test_reports_the_same_from_a_fork_as_from_a_new_process(name):
    program = next(program for program in programs() if program.name == name)
    (forked,), alone = run_all([program], jobs=1), run(program)
    assert (forked.findings, forked.failure) == (alone.findings, alone.failure)
    assert forked.is_named_first


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("import torch", "torch"),
        ("import os\nimport torch\nSEED = int(os.environ.get('ZOO_SEED', 0))", "torch"),
        ("import torch\nfrom transformers import Trainer", "transformers"),
        ("    from tensorflow import keras", "keras"),
        ("import keras\nfrom transformers import AutoTokenizer", "keras"),
        ("import keras\nimport torch", None),
        ("import os\nos.environ['KERAS_BACKEND'] = 'torch'\nimport keras", None),
        ("import torch.multiprocessing as mp", None),
        ("import numpy", None),
    ],
)
def test_recognises_programs_that_a_fork_can_run(source, kind):
    assert kind_of(source) == kind
