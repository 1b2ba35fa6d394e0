from dataclasses import replace

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import CopiedTarget, TargetHistory
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.data import LabelsInInputsCrash
from diagnostics.facts.dependence import CopyFacts, DependenceFacts
from diagnostics.facts.pipeline import BatchFacts, ModelFacts
from diagnostics.rules.data.labels_in_inputs import LabelsInInputs

RULE = LabelsInInputs()
TOKENS = {"input_ids": np.ones((2, 4), int), "attention_mask": np.ones((2, 4), int)}
LABELS = np.array([0, 2])
KERAS = ModelFacts("DistilBertTextClassifier", "keras", 9, 9, computes_loss=False)
CRASH = CrashFacts(
    "ValueError", "None values not supported.", (FrameFacts("train.py", 31, "<module>", yours=True),), live=True
)


class TestFromBatch:
    def test_fires_on_one_dict_with_the_labels_in_it(self):
        finding = RULE.from_batch(BatchFacts(2, {**TOKENS, "labels": LABELS}), KERAS).for_library("keras")
        assert (finding.rule, finding.stage, finding.severity) == ("labels-in-inputs", "data", "error")
        assert finding.evidence == {"inputs": ["input_ids", "attention_mask", "labels"], "labels": "labels"}

    @pytest.mark.parametrize("name", ["label", "label_ids", "targets", "target", "y", "Label"])
    def test_knows_the_other_names_of_a_target(self, name):
        finding = RULE.from_batch(BatchFacts(2, {**TOKENS, name: LABELS}), KERAS).for_library("keras")
        assert finding.evidence["labels"] == name

    def test_takes_the_most_usual_name_where_several_are_there(self):
        batch = BatchFacts(2, {"y": np.ones((2, 1)), "labels": LABELS})
        assert RULE.from_batch(batch, KERAS).evidence["labels"] == "labels"

    def test_does_not_write_out_a_hundred_columns(self):
        columns = {f"feature_{i}": np.ones(2) for i in range(100)}
        assert RULE.from_batch(BatchFacts(2, {**columns, "target": LABELS}), KERAS).severity == "error"

    def test_words_the_fix_for_a_loop_in_pytorch(self):
        model = ModelFacts("Encoder", "torch", 9, 9, computes_loss=False)
        assert RULE.from_batch(BatchFacts(2, {**TOKENS, "labels": LABELS}), model).severity == "error"

    @pytest.mark.parametrize(
        "batch",
        [
            BatchFacts(2, TOKENS, LABELS, "labels"),
            BatchFacts(2, TOKENS, LABELS),
            BatchFacts(2, {**TOKENS, "y": np.ones((2, 3))}, LABELS),  # a conditional model: y is an input too
            BatchFacts(2, {**TOKENS, "labels": LABELS}, None, "boxes"),  # a target that is no single array
            BatchFacts(2, {"pixels": np.ones((2, 8)), "year": np.ones(2)}),
        ],
        ids=["named target", "tuple", "label as an input and a target", "target known by name", "no such name"],
    )
    def test_is_silent_where_the_target_stands_apart_or_nothing_is_called_one(self, batch):
        assert RULE.from_batch(batch, KERAS) is None

    def test_is_silent_where_the_model_computes_its_own_loss(self):
        model = ModelFacts("TFBertForSequenceClassification", "transformers", 9, 9, computes_loss=True)
        assert RULE.from_batch(BatchFacts(2, {**TOKENS, "labels": LABELS}), model) is None

    def test_needs_to_know_who_computes_the_loss(self):
        with pytest.raises(NotApplicable):
            RULE.from_batch(BatchFacts(2, {**TOKENS, "labels": LABELS}), ModelFacts("Siamese", "keras", 9, 9))


class TestFromCrash:
    def test_names_the_inputs_and_the_labels_among_them(self):
        symptom = LabelsInInputsCrash(("token_ids", "padding_mask", "labels"), "labels")
        finding = RULE.from_crash(CRASH, symptom)
        assert str(finding.where) == "train.py:31"

    def test_finds_the_labels_among_the_inputs_itself(self):
        finding = RULE.from_crash(CRASH, LabelsInInputsCrash(("token_ids", "label")))
        assert finding.evidence == {"inputs": ["token_ids", "label"], "labels": "label"}

    def test_says_so_if_no_input_is_called_one(self):
        assert RULE.from_crash(CRASH, LabelsInInputsCrash(("token_ids", "mood"))).severity == "error"

    def test_says_what_a_bare_text_leaves_open(self):
        finding = RULE.from_crash(replace(CRASH, live=False), LabelsInInputsCrash())
        assert finding.evidence == {"inputs": [], "labels": None}

    def test_says_what_could_not_be_read_from_the_frames(self):
        assert RULE.from_crash(CRASH, LabelsInInputsCrash()).severity == "error"


def copied(column, equal):
    steps = np.arange(0, 200, 20)
    found = CopiedTarget(column, 25, 640, 640 if equal else 2, equal)
    return RULE.from_targets(
        TargetHistory("mean_squared_error", steps, steps * 1.0, steps * 1.0, 640, 1, copied=found)
    )


class TestTargetAmongTheInputs:
    def test_as_the_last_value_of_a_window(self):
        finding = copied(24, True)
        assert finding.severity == "warning"

    def test_as_a_code_of_the_class(self):
        assert copied(3, False).severity == "warning"

    def test_silent_without_one(self):
        steps = np.arange(0, 200, 20)
        assert RULE.from_targets(TargetHistory("cross_entropy", steps, steps, steps, 640, 1)) is None


class TestCopiedTokens:
    def judge(self, share, source="src", trained=True):
        return RULE.from_answers(DependenceFacts(copy=CopyFacts("tgt", share, source, 9), trained=trained))

    def test_of_a_decoder_that_is_given_its_targets(self):
        finding = self.judge(1.0)
        assert finding.severity == "error"

    def test_of_a_masked_model_from_which_no_token_is_hidden(self):
        copied = CopyFacts("input_ids", 0.99, None, 9, masked=True)
        finding = RULE.from_answers(DependenceFacts(copy=copied, trained=True)).for_library("torch")
        assert finding.severity == "warning"

    def test_of_a_masked_model_whose_targets_are_the_mask_token(self):
        copied = CopyFacts("input_ids", 0.1, None, 9, masked=True, mask=3, targets=95, hidden=86)
        finding = RULE.from_answers(DependenceFacts(copy=copied, trained=True))
        assert finding.severity == "error"
        assert (finding.evidence["mask"], finding.evidence["hidden"], finding.evidence["targets"]) == (3, 86, 95)
        assert "clone()" in finding.fix

    def test_silent_where_random_tokens_are_not_given_back(self):
        assert self.judge(0.5) is None
        assert self.judge(1.0, trained=False) is None

    def test_not_applicable_where_targets_are_no_input(self):
        with pytest.raises(NotApplicable):
            RULE.from_answers(DependenceFacts(trained=True))
