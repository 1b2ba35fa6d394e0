"""The report of a watched run, built from what any watcher saw."""

import numpy as np

from diagnostics.api.watch_report import watch_report
from tests.support.courses import recorded


class Seen:
    """A watcher that has seen what it is told: what the report asks of one is all it has."""

    def __init__(self, losses, norms=(), faults=None, uncovered=None, rates=0.1):
        self.rates = rates
        self.losses, self.norms = np.array(losses), np.array(norms, dtype=np.float32)
        self.faults, self.uncovered = faults or {}, uncovered or {}
        self.forwards, self.origin, self.reads = len(losses), None, 0

    def read(self):
        self.reads += 1

    def ranges(self):
        return None

    def history(self):
        count = len(self.losses)
        known = np.arange(count) < len(self.norms)
        norms = np.zeros(count, dtype=np.float32)
        norms[known] = self.norms
        return recorded(
            total_steps=count,
            steps=np.arange(count),
            layers=("head",),
            gradient_norms=norms,
            layer_gradient_norms=norms[:, None],
            gradient_known=known,
            learning_rates=np.broadcast_to(np.reshape(self.rates, (-1, 1)), (count, 1)),
            sampled_steps=np.arange(1),
            update_ratios=np.full((1, 1), 1e-3, np.float32),
            weight_norms=np.ones((1, 1), np.float32),
            memory_bytes=np.full(1, np.nan),
            training_mode=np.ones(count, dtype=np.int8),
            passes=np.ones(count, dtype=np.int64),
            gradients_zeroed=np.full(count, -1, dtype=np.int8),
            losses=self.losses if count else None,
        )


def parts(seen):
    return {stage.name: (stage.status, stage.detail) for stage in watch_report(seen, "Net").stages}


class TestWatchReport:
    def test_reads_first_and_names_what_was_watched(self):
        seen = Seen([2.0])
        assert watch_report(seen, "Net").title == "watched 1 step of Net"
        assert watch_report(Seen([2.0] * 1200), "Net").title == "watched 1,200 steps of Net"
        assert seen.reads == 1

    def test_keeps_the_facts_for_the_page(self):
        report = watch_report(Seen([2.0, 1.0]), "Net")
        assert report.history.losses.values.tolist() == [2.0, 1.0]
        assert (report.origin, report.ranges, report.traces, report.failed) == (None, None, (), None)

    def test_says_how_the_loss_went(self):
        assert parts(Seen([2.0, 1.23456]))["loss"] == ("passed", "2 in the first step, 1.235 in the last")
        assert parts(Seen([2.0, np.nan]))["loss"] == ("passed", "2 in the first step, NaN in the last")

    def test_says_how_the_gradients_went(self):
        seen = parts(Seen([1.0] * 3, norms=[0.5, 2.0, np.nan]))["gradients"]
        assert seen == ("passed", "norm 0.5 to 2 over 1 layer, then not finite")
        assert parts(Seen([1.0], norms=[np.inf]))["gradients"] == ("passed", "never finite over 1 layer")

    def test_says_how_the_learning_rate_went(self):
        moved = "a step changes a layer by 0.001 of its size (median)"
        assert parts(Seen([1.0] * 3))["updates"] == ("passed", moved)
        falls = parts(Seen([1.0] * 3, rates=[0.05, 1e-3, 1.9e-7]))["updates"][1]
        assert falls == f"{moved}; learning rate 0.05 in the first step, 1.9e-07 in the last"
        cycle = parts(Seen([1.0] * 3, rates=[4e-4, 0.01, 4e-8]))["updates"][1]
        assert cycle == f"{moved}; learning rate 0.0004 in the first step, 4e-08 in the last, up to 0.01 between"

    def test_says_what_was_not_seen_and_what_to_do(self):
        seen = parts(Seen([]))
        assert seen["loss"] == ("not judged", "the loop passed none: call watch.step(loss)")
        assert seen["forward passes"] == (
            "not judged",
            "none was seen: pass the model that the loop calls",
        )

    def test_says_why_a_part_was_not_covered_and_what_failed(self):
        seen = Seen([1.0], faults={"loss": "ours"}, uncovered={"weights": "too large", "trace": "compiled"})
        assert parts(seen)["loss"] == ("not judged", "an error in diagnostics itself; see below")
        assert parts(seen)["weights"] == ("not judged", "too large")
        assert parts(seen)["trace"] == ("not judged", "compiled")
        assert watch_report(seen, "Net").faults == ("ours",)
