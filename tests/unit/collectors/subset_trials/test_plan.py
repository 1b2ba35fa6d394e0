"""Which runs are made on 1, 2 and 5 examples and the batch, and what is concluded from them."""

import numpy as np
import pytest

from diagnostics.collectors.shared.loss_match import Recognised
from diagnostics.collectors.shared.overfit_run import Run
from diagnostics.collectors.shared.pipeline import UsersCodeRaised
from diagnostics.collectors.subset_trials.answers import Answers
from diagnostics.collectors.subset_trials.choice import Rows, digests
from diagnostics.collectors.subset_trials.plan import trials


class Fake:
    """Subsets whose copies learn as they are told.

    Args:
        fails_from: number of examples from which on a constant prediction is all that is learned.
        theirs_learns: whether the user's optimizer learns what can be learned.
        inputs: one number a row.
    """

    rescalable = True
    optimizer = "SGD"

    def __init__(
        self, fails_from=99, theirs_learns=True, inputs=range(8), labels=(0, 1) * 4, kind="cross_entropy", **fields
    ):
        self.kind, self.rate = kind, 0.1
        self.num_parameters = self.num_trainable = 1000
        labels = np.array(labels)
        self.rows = Rows(
            digests([np.array(list(inputs))], len(labels)), digests([labels], len(labels)), labels.astype(float),
            frozenset(labels.tolist()), len(labels),
        )  # fmt: skip
        self._fails_from, self._theirs_learns = fails_from, theirs_learns
        self.plans = []
        vars(self).update(fields)

    def run(self, chosen, plan, seen):
        self.plans.append((len(chosen), plan.theirs, plan.learning_rate))
        floor = 0.0 if len(chosen) == 1 else np.log(2)
        learns = len(chosen) < self._fails_from and (self._theirs_learns or not plan.theirs)
        losses = []
        for step in range(plan.steps):
            loss = np.exp(-step / 5) * np.log(2) if learns else np.log(2)
            if not seen.known_first:
                seen.start(Recognised(self.kind, floor))
            seen.add(loss, self.answers(loss, len(chosen)))
            losses.append(float(loss))
            if plan.is_done(losses):
                break
        return Run(tuple(losses), (0.01,), output_spread=0.5 if learns else 0.0)

    def answers(self, loss, examples):
        return Answers(np.full(examples, np.exp(-loss)), float(loss < 0.5))


def outcomes(subsets, seconds=60.0):
    return [(trial.examples, trial.outcome) for trial in trials(subsets, seconds)]


class TestTrials:
    def test_one_run_a_count_is_enough_if_the_users_optimizer_learns(self):
        subsets = Fake()
        assert outcomes(subsets) == [(1, "learned"), (2, "learned"), (5, "learned"), (8, "learned")]
        assert subsets.plans == [(count, True, 0.1) for count in (1, 2, 5, 8)]

    def test_another_optimizer_is_tried_where_the_users_does_not_learn(self):
        subsets = Fake(theirs_learns=False)
        (first, *_) = trials(subsets, 60.0)
        assert first.outcome == "learned"
        assert [(run.theirs, run.learned, run.optimizer) for run in first.runs] == [
            (True, False, "SGD"), (False, True, "AdamW")
        ]  # fmt: skip

    @pytest.mark.parametrize("count", [1, 2, 5, 8])
    def test_ends_with_the_first_count_that_is_not_learned(self, count):
        found = outcomes(Fake(fails_from=count))
        assert found[-1] == (count, "not learned")
        assert {outcome for _, outcome in found[:-1]} <= {"learned"}

    def test_says_how_far_it_came(self):
        *_, last = trials(Fake(fails_from=2), 60.0)
        assert last.reason == "the loss never fell below 0.6931; a constant prediction reaches 0.6931"
        assert last.best.output_spread == 0.0

    def test_no_time_is_not_a_failure(self):
        first, *others = trials(Fake(fails_from=1), 1e-9)
        assert (first.outcome, first.reason) == ("not judged", "the time was used up")
        assert [trial.outcome for trial in others] == ["not judged"] * 3
        assert all(len(trial.runs) <= 1 for trial in (first, *others))

    def test_a_count_that_cannot_be_run_does_not_stop_the_others(self):
        class Fails(Fake):
            def run(self, chosen, plan, seen):
                if len(chosen) == 1:
                    raise UsersCodeRaised from ValueError("Expected more than 1 value per channel when training")
                return super().run(chosen, plan, seen)

        first, second, *_ = trials(Fails(), 60.0)
        assert first.outcome == "not judged"
        assert first.reason == "ValueError: Expected more than 1 value per channel when training"
        assert second.outcome == "learned"

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"num_trainable": 100}, "most of the model is frozen"),
            ({"num_trainable": 1, "num_parameters": 1}, "the model has fewer trainable numbers than there are"),
        ],
    )
    def test_a_failure_that_may_have_another_reason_is_not_one(self, fields, reason):
        last = list(trials(Fake(fails_from=2, **fields), 60.0))[1]
        assert last.outcome == "not judged"
        assert last.reason.startswith(reason)

    def test_an_unknown_loss_that_stays_high_is_not_judged(self):
        class Unknown(Fake):
            def answers(self, loss, examples):
                return None

        first, *_ = trials(Unknown(fails_from=1, kind="other"), 60.0)
        assert first.outcome == "not judged"
        assert first.reason.startswith("how low this loss can get is not known; the loss fell from 0.6931")
        assert len(first.runs) == 4

    def test_contradicting_labels_are_counted(self):
        *_, last = trials(Fake(fails_from=5, inputs=[1, 1, 1, 1, 2, 2, 2, 2], labels=(0, 1, 2, 3) * 2), 60.0)
        assert (last.examples, last.equal_inputs, last.contradictions) == (5, 3, 3)

    def test_labels_of_the_data_that_the_batch_lacks_are_counted(self):
        subsets = Fake()
        subsets.rows = Rows(*list(vars(subsets.rows).values())[:3], frozenset({0, 1, 7}), 8)
        *_, last = trials(subsets, 60.0)
        assert (last.distinct_labels, last.missing_labels) == (2, 1)
