"""The direction in which Lightning's callbacks look for progress."""

from textwrap import dedent

import pytest

from tests.support.sources import found as found_in


def modes(source, imports="import lightning as L"):
    return [one.names for one in found_in("monitored_modes", f"{imports}\n{dedent(source)}")]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('ModelCheckpoint(folder, monitor="val_acc")', ("ModelCheckpoint", "val_acc", "fall")),
        ('L.pytorch.callbacks.EarlyStopping("val/f1", patience=3)', ("EarlyStopping", "val/f1", "fall")),
        (
            """
            def callbacks():
                return [ModelCheckpoint(monitor="val_loss", mode="max", save_top_k=3)]
            """,
            ("ModelCheckpoint", "val_loss", "rise"),
        ),
    ],
)
def test_reads_the_metric_and_the_direction(source, found):
    assert modes(source) == [found]


@pytest.mark.parametrize(
    "source",
    [
        "ModelCheckpoint(folder, save_last=True)",
        'ModelCheckpoint(monitor="val_acc", save_top_k=-1)',
        'ModelCheckpoint(monitor="val_acc", mode=config.mode)',
        "EarlyStopping(monitor=config.metric)",
        'EarlyStopping("val_acc", **options)',
        'Timer("val_acc")',
    ],
)
def test_leaves_out_what_is_not_known_or_does_not_matter(source):
    assert modes(source) == []


@pytest.mark.parametrize("imports", ["import keras", "import lightning, keras", "from .lightning import L"])
def test_leaves_out_the_callbacks_of_keras(imports):
    assert modes('EarlyStopping("val_acc")', imports) == []
