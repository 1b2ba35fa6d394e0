import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.data import LabelBeyondOutputs
from diagnostics.facts.pipeline import BatchFacts, ModelFacts, OutputFacts
from diagnostics.facts.where import Where
from diagnostics.rules.model.loss.labels_out_of_range import LabelsOutOfRange

MODEL = ModelFacts("DistilBertForSequenceClassification", "transformers", 1000, 1000)
CRASH = CrashFacts(
    "IndexError",
    "Target 2 is out of bounds.",
    (
        FrameFacts("train.py", 31, "main", "loss = loss_fn(logits, labels)", yours=True),
        FrameFacts("torch/nn/functional.py", 3494, "cross_entropy"),
    ),
    live=True,
)


def batch(labels, ignore_index=None):
    return BatchFacts(len(labels), {}, np.array(labels), "labels", ignore_index)


class TestFromOutputs:
    def test_a_third_label_for_two_outputs_is_an_error(self):
        finding = LabelsOutOfRange().from_outputs(batch([0, 1, 2, 2]), OutputFacts((4, 2), 2), MODEL)
        assert finding.rule == "labels-out-of-range"
        assert (finding.severity, finding.stage) == ("error", "model")
        assert finding.evidence == {
            "lowest_label": 0,
            "highest_label": 2,
            "num_outputs": 2,
            "labels_outside": [2],
            "examples_outside": 2,
            "labels_in_batch": 4,
        }

    def test_the_fix_is_in_the_words_of_the_model_library(self):
        model = ModelFacts("Bert", "transformers", 1, 1, outputs_setting="from_pretrained(..., num_labels={})")
        assert LabelsOutOfRange().from_outputs(batch([0, 4]), OutputFacts((2, 2), 2), model).severity == "error"

    def test_labels_that_may_be_counted_from_1_are_asked_about_first(self):
        assert (
            LabelsOutOfRange().from_outputs(batch([1, 2, 3, 1]), OutputFacts((4, 3), 3), MODEL).severity == "error"
        )

    def test_several_labels_outside_are_listed(self):
        assert LabelsOutOfRange().from_outputs(batch([0, 3, 2]), OutputFacts((3, 2), 2), MODEL).severity == "error"

    def test_a_negative_label_asks_for_counting_from_0(self):
        assert (
            LabelsOutOfRange().from_outputs(batch([-1, 1, 1]), OutputFacts((3, 2), 2), MODEL).severity == "error"
        )

    def test_labels_up_to_the_last_output_are_clean(self):
        assert LabelsOutOfRange().from_outputs(batch([0, 1, 2]), OutputFacts((3, 3), 3), MODEL) is None

    def test_the_ignore_index_is_no_label(self):
        labels = batch([[0, -100], [1, -100]], ignore_index=-100)
        assert LabelsOutOfRange().from_outputs(labels, OutputFacts((2, 2, 2), 2), MODEL) is None

    def test_a_batch_of_ignored_labels_alone_is_clean(self):
        labels = batch([[-100, -100]], ignore_index=-100)
        assert LabelsOutOfRange().from_outputs(labels, OutputFacts((1, 2, 2), 2), MODEL) is None

    def test_regression_targets_are_not_judged(self):
        with pytest.raises(NotApplicable):
            LabelsOutOfRange().from_outputs(batch([0.5, 7.0]), OutputFacts((2, 1), None), MODEL)
        with pytest.raises(NotApplicable):
            LabelsOutOfRange().from_outputs(batch([0, 1]), OutputFacts((2, 1), 2, indexed_labels=False), MODEL)

    def test_without_labels_it_cannot_be_judged(self):
        with pytest.raises(NotApplicable):
            LabelsOutOfRange().from_outputs(BatchFacts(2, {}), OutputFacts((2, 2), 2), MODEL)


class TestFromCrash:
    def test_tensors_from_the_frames_give_the_numbers_and_the_line(self):
        symptom = LabelBeyondOutputs(
            label=2,
            labels=np.array([0, 1, 2]),
            num_outputs=2,
            outputs_setting="from_pretrained(..., num_labels={})",
        )
        finding = LabelsOutOfRange().from_crash(CRASH, symptom)
        assert finding.where == Where("train.py", 31, "main")

    def test_from_text_alone_it_says_what_cannot_be_known(self):
        finding = LabelsOutOfRange().from_crash(CRASH, LabelBeyondOutputs(label=2))
        assert finding.where == Where("train.py", 31, "main")

    def test_a_message_without_a_label_still_names_the_rule(self):
        finding = LabelsOutOfRange().from_crash(CRASH, LabelBeyondOutputs())
        assert finding.evidence == {"label": None}

    def test_frames_whose_labels_all_fit_fall_back_to_the_message(self):
        symptom = LabelBeyondOutputs(label=7, labels=np.array([0, 1]), num_outputs=2)
        assert LabelsOutOfRange().from_crash(CRASH, symptom).severity == "error"

    def test_a_negative_label_in_a_text_is_below_the_first_class_not_past_the_last(self):
        assert LabelsOutOfRange().from_crash(CRASH, LabelBeyondOutputs(label=-1)).severity == "error"
