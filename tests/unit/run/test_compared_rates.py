"""A script that compares learning rates is right to try bad ones: what is wrong with these is a note."""

import numpy as np
import pytest

from diagnostics.engine.finding import Finding
from diagnostics.report.merge import TrainingReports, merged
from diagnostics.report.report import Report
from diagnostics.run.compared_rates import without_bad_trials
from tests.support.courses import history

FALLS = np.linspace(0.7, 0.1, 40)
RISES = np.linspace(0.7, 90.0, 40)
DIVERGED = Finding("learning-rate-too-high", "error", "optimizer", "The loss diverged.", "lower it")
JUDGED = frozenset({"learning-rate-too-high", "dead-units"})


def trained(rate, losses, *findings, before=(), layers=("0", "2"), alone=True, judged=JUDGED):
    watched = Report("watched", findings, judged=judged, history=history(losses, rates=rate, layers=layers))
    return TrainingReports(Report("examined", before), watched, alone)


def found(*trainings):
    return merged("", without_bad_trials(trainings)).findings


def told(*trainings):
    return [(finding.rule, finding.severity) for finding in found(*trainings)]


AS_ERROR = [("learning-rate-too-high", "error")]
AS_NOTE = [("learning-rate-too-high", "note")]


class TestATrialAmongOthers:
    def test_is_noted_with_the_rates_that_were_right(self):
        bad = trained(30.0, RISES, DIVERGED)
        (finding,) = found(trained(0.001, FALLS), trained(0.1, FALLS), bad)
        assert finding.severity == "note"
        assert finding.message == (
            "The loss diverged. The script compares learning rates: such models learned at 0.001 and 0.1. "
            "A comparison is meant to have bad ones."
        )

    def test_is_noted_wherever_it_stands(self):
        bad = trained(30.0, RISES, DIVERGED)
        assert told(bad, trained(0.001, FALLS), trained(0.1, FALLS)) == AS_NOTE

    def test_is_noted_for_what_was_seen_before_it_too(self):
        bad = trained(30.0, RISES, before=[DIVERGED])
        assert told(bad, trained(0.001, FALLS), trained(0.1, FALLS)) == AS_NOTE

    def test_is_noted_for_a_nan_of_which_nothing_is_judged_where_there_is_none(self):
        nan = Finding("non-finite-loss", "error", "numerics", "The loss is NaN.", "lower the rate")
        bad = trained(30.0, [*RISES, np.nan], nan)
        assert told(trained(0.001, FALLS), trained(0.1, FALLS), bad) == [("non-finite-loss", "note")]

    def test_is_noted_where_its_first_watched_loss_is_nan(self):
        nan = Finding("non-finite-loss", "error", "numerics", "The loss is NaN.", "lower the rate")
        bad = trained(30.0, [np.nan] * 40, nan)
        assert told(trained(0.001, FALLS), trained(0.1, FALLS), bad) == [("non-finite-loss", "note")]

    def test_is_known_by_layers_that_keras_numbers_anew(self):
        names = [tuple(f"sequential_{n}/dense_{2 * n + k}" for k in (0, 1)) for n in (1, 2, 3)]
        good = [trained(rate, FALLS, layers=own) for rate, own in zip((0.1, 0.01), names, strict=False)]
        assert told(*good, trained(9.0, RISES, DIVERGED, layers=names[2])) == AS_NOTE

    def test_may_have_succeeded_with_another_seed(self):
        bad, good = trained(3.0, RISES, DIVERGED), trained(3.0, FALLS)
        assert told(bad, good, trained(0.1, FALLS), trained(0.01, FALLS)) == AS_NOTE


class TestATrainingIsNoTrial:
    @pytest.mark.parametrize(
        "others",
        [
            [],
            [trained(0.1, FALLS)],  # the other phase of the same work
            [trained(30.0, FALLS), trained(30.0, FALLS)],  # the same rate, with other seeds
            [trained(0.1, RISES), trained(0.01, RISES)],  # nothing learned
            [trained(0.1, FALLS, layers=("1", "3")), trained(0.01, FALLS, layers=("1", "3"))],
            [trained(0.1, FALLS, alone=False), trained(0.01, FALLS, alone=False)],  # players
            [trained(0.1, FALLS, judged=frozenset()), trained(0.01, FALLS, judged=frozenset())],
            [trained(0.1, FALLS, DIVERGED), trained(0.01, FALLS, DIVERGED)],
        ],
        ids=["one", "two", "seeds", "all bad", "other models", "players", "not judged", "found in all"],
    )
    def test_without_others_like_it_that_learned(self, others):
        assert told(*others, trained(30.0, RISES, DIVERGED)) == AS_ERROR

    def test_that_goes_on_where_others_ended(self):
        phases = [trained(0.1, FALLS), trained(0.01, FALLS)]
        assert told(*phases, trained(30.0, np.linspace(0.1, 90.0, 40), DIVERGED)) == AS_ERROR
