"""What `overfit` says: the count at which learning stops, and where to look."""

import json

import numpy as np
import pytest

from diagnostics.errors import InvalidInput
from diagnostics.facts.trials import SubsetRun, SubsetTrial
from diagnostics.report.contents import StageResult
from diagnostics.report.overfit import OverfitReport
from diagnostics.report.report import Report

SHARES = np.array([[[0.5, 0.5], [0.5, 0.5]], [[0.9, 0.1], [0.1, 0.9]]], dtype=np.float32)


def run(*losses, theirs=True, learned=True, **fields):
    optimizer, rate = ("Adam", 0.002) if theirs else ("AdamW", 0.001)
    return SubsetRun(theirs, optimizer, rate, losses, learned, **{"largest_update": 0.01, **fields})


def trial(examples, outcome="learned", *runs, whole=False, **fields):
    runs = runs or (run(0.7, 0.3, 0.1, learned=outcome == "learned"),)
    reason = "" if outcome == "learned" else fields.pop("reason", "the loss never fell below 0.69")
    return SubsetTrial(examples, whole, outcome, reason, 0.69, True, runs=runs, **fields)


def result(*trials):
    return OverfitReport(
        Report("overfit Net with a list", stages=(StageResult("batch", "passed"),)), trials, 1.2, 60.0
    )


HEALTHY = result(
    trial(1),
    trial(2, "learned", run(0.7, 0.1, steps_kept=(0, 1), answers=SHARES[:, :, 0], probabilities=SHARES),
          targets=np.array([0.0, 1.0]), distinct_labels=2),
    trial(8, whole=True, missing_labels=0),
)  # fmt: skip


class TestText:
    def test_of_a_healthy_model(self):
        assert str(HEALTHY).splitlines() == [
            "overfit Net with a list",
            f"  ✓ 1 example{' ' * 29}  learned      Adam at 0.002 (yours): loss 0.7 to 0.1 in 3 steps",
            f"  ✓ 2 examples{' ' * 28}  learned      Adam at 0.002 (yours): loss 0.7 to 0.1 in 2 steps",
            "  ✓ a batch of 8 examples with every label  learned      "
            "Adam at 0.002 (yours): loss 0.7 to 0.1 in 3 steps",
            "",
            "Every count was memorised.",
            "1.2 s of the 60 s given. Only copies were trained: the model, its optimizer and all random states "
            "are as they were.",
        ]
        assert HEALTHY.ok
        assert HEALTHY.stops_at is None
        assert HEALTHY.points_to == ()

    def test_control_characters_are_shown(self):
        assert "\x1b" not in str(result(trial(1, "not judged", reason="\x1b[31mred")))


class TestPointsTo:
    @pytest.mark.parametrize(
        ("last", "words"),
        [
            (trial(1, "not learned"), "Even a single example is not learned."),
            (trial(2, "not learned", run(0.7, learned=False, output_spread=0.0)), "The predictions for all 2"),
            (trial(2, "not learned", run(0.7, learned=False, output_spread=0.1)), "One constant prediction"),
            (trial(5, "not learned", contradictions=2, equal_inputs=3), "The labels contradict each other: 2 of"),
            (trial(5, "not learned"), "Fewer examples are learned."),
            (trial(32, "not learned", whole=True), "A few examples are learned, the batch is not."),
        ],
    )  # fmt: skip
    def test_names_what_a_count_that_fails_points_to(self, last, words):
        found = result(*(trial(count) for count in (1, 2, 5) if count < last.examples), last)
        assert found.stops_at == last.examples
        assert found.points_to[0].startswith(words)
        assert not found.ok
        assert f"Stops learning at {last.examples} example" in str(found)

    @pytest.mark.parametrize(
        ("theirs", "words"),
        [
            (run(0.7, 0.7, learned=False, largest_update=0.0), "changed no weight. Look at its learning rate"),
            (run(0.7, 90.0, learned=False), "the loss did not fall. Try a smaller learning rate."),
            (run(0.7, float("nan"), learned=False), "the loss did not fall. Try a smaller learning rate."),
            (run(0.7, 0.6, learned=False), "That is slow for so few examples, and may be meant"),
        ],
    )
    def test_names_the_users_optimizer_where_another_one_learned(self, theirs, words):
        found = result(trial(1, "learned", theirs, run(0.7, 0.1, theirs=False)))
        assert words in found.points_to[0]
        assert found.points_to[0].startswith("AdamW at 0.001 learned 1 example in 2 steps;")
        assert found.ok

    def test_partly_and_not_judged_stop_nothing(self):
        found = result(trial(1), trial(2, "partly"), trial(8, "not judged", reason="the time was used up"))
        assert found.stops_at is None
        assert found.ok
        assert "Nothing stopped it" in str(found)


class TestHistory:
    def test_is_plain_data(self):
        json.dumps(HEALTHY.history, allow_nan=False)
        assert HEALTHY.history[1]["runs"][0]["losses"] == [0.7, 0.1]
        assert np.array(HEALTHY.history[1]["runs"][0]["probabilities"]) == pytest.approx(SHARES)

    def test_not_a_number_is_null(self):
        found = result(trial(1, "not judged", run(float("nan"), learned=False)))
        assert json.loads(found.to_json())["trials"][0]["runs"][0]["losses"] == [None]


class TestHtml:
    def test_draws_the_loss_and_the_probabilities(self):
        page = HEALTHY.to_html()
        assert page.startswith("<!DOCTYPE html>")
        assert page.count("<svg") == 5  # a loss a count, and a map an example
        assert "example 2, class 1: probability 0.50 at first, 0.90 in the end" in page
        assert "http" not in page.replace("http-equiv", "")

    def test_a_notebook_gets_it_in_a_frame_of_its_own(self):
        shown = HEALTHY._repr_html_()
        assert shown.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
        assert "<style" not in shown

    def test_strings_of_the_user_are_escaped(self):
        assert "<script>" not in result(trial(1, "not judged", reason="<script>")).to_html()

    @pytest.mark.parametrize("ending", ["html", "json", "txt"])
    def test_is_saved_by_the_files_ending(self, tmp_path, ending):
        path = HEALTHY.save(tmp_path / f"overfit.{ending}")
        assert path.read_text().strip()

    def test_another_ending_is_refused_in_words(self, tmp_path):
        with pytest.raises(InvalidInput, match=r"must end in \.html, \.json, \.txt"):
            HEALTHY.save(tmp_path / "overfit.pdf")
