import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.ranks.notes import Iteration, RankNotes
from diagnostics.rules.distributed.repeated_shuffle import RepeatedShuffle


def found(*iterations):
    return RepeatedShuffle().from_notes(RankNotes(0, 2, iterations=iterations))


def epoch(number, batches=8, **more):
    return Iteration(batches, True, **{"dataset": 1, "optimizer": 1, "size": 256, "shuffled": (0, number)} | more)


class TestFromNotes:
    def test_says_how_often_the_order_was_the_same(self):
        finding = found(epoch(0), epoch(0), epoch(0))
        assert finding.severity == "warning"

    def test_is_clean_where_one_epoch_differs(self):
        assert found(epoch(0), epoch(0), epoch(1)) is None

    @pytest.mark.parametrize(
        "iterations",
        [
            (epoch(0),),
            (epoch(0), epoch(0, dataset=2)),  # two folds
            (epoch(0), epoch(0, optimizer=2)),  # two trainings, which both begin with epoch 0
            (epoch(0, batches=1), epoch(0, batches=1)),
            (epoch(0, shuffled=None), epoch(0, shuffled=None)),
        ],
        ids=["once", "folds", "trainings", "one batch", "another sampler"],
    )
    def test_is_not_applicable_without_two_epochs_of_one_training(self, iterations):
        with pytest.raises(NotApplicable):
            found(*iterations)
