"""The programs of `tests/healthy/`, which train right: where they are, and how to load one."""

import importlib.util
from pathlib import Path

from tests.support.marks import quick

FOLDER = Path(__file__).parents[1] / "healthy"
PROGRAMS = sorted(FOLDER.glob("*/*.py"), key=lambda path: path.name)


def load(path):
    """Import a program again, with its `build` and `train`."""
    spec = importlib.util.spec_from_file_location(f"healthy_{path.stem}", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


# Which of them `nox -s tests` trains: of every kind a few, and those whose shape no other has.
FEW = {"mlp_classifier", "cnn_batch_norm", "frozen_backbone", "autocast_bfloat16"}
FEW |= {"accumulation", "watched_two_networks", "script_two_tasks", "script_closure", "script_by_hand"}
FEW |= {"keras_softmax", "keras_two_inputs", "trainer_gpt2", "trainer_custom_loss"}


def few_of(programs):
    """Return the programs as parameters, all but a few marked exhaustive."""
    return quick(programs, *(path for path in programs if path.stem in FEW))
