from dataclasses import replace

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import CopiedTarget, TargetHistory
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.loss import LabelsInInputsCrash
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
        assert finding.message == (
            'This batch is one dict of inputs (input_ids, attention_mask and labels) with "labels" among '
            "them, and has no target. The loss compares the prediction of DistilBertTextClassifier with "
            "a target; without one there is no loss, and nothing to compute a gradient from."
        )
        assert (finding.fix, *finding.alternatives) == (
            (
                'dataset.to_tf_dataset(columns=["input_ids", "attention_mask"], label_cols=["labels"], ...), '
                "and a loss with from_logits=True if the model returns logits"
            ),
            (
                "only for a TensorFlow class of transformers 4, which has its own loss: "
                "model.compile(optimizer=...) without a loss"
            ),
        )
        assert finding.evidence == {"inputs": ["input_ids", "attention_mask", "labels"], "labels": "labels"}

    @pytest.mark.parametrize("name", ["label", "label_ids", "targets", "target", "y", "Label"])
    def test_knows_the_other_names_of_a_target(self, name):
        finding = RULE.from_batch(BatchFacts(2, {**TOKENS, name: LABELS}), KERAS).for_library("keras")
        assert finding.evidence["labels"] == name
        assert f'label_cols=["{name}"]' in finding.fix

    def test_takes_the_most_usual_name_where_several_are_there(self):
        batch = BatchFacts(2, {"y": np.ones((2, 1)), "labels": LABELS})
        assert RULE.from_batch(batch, KERAS).evidence["labels"] == "labels"

    def test_does_not_write_out_a_hundred_columns(self):
        columns = {f"feature_{i}": np.ones(2) for i in range(100)}
        finding = RULE.from_batch(BatchFacts(2, {**columns, "target": LABELS}), KERAS).for_library("keras")
        assert "feature_4, feature_5 and 95 more) with" in finding.message
        assert finding.fix.startswith('dataset.to_tf_dataset(columns=[...], label_cols=["target"], ...)')

    def test_words_the_fix_for_a_loop_in_pytorch(self):
        model = ModelFacts("Encoder", "torch", 9, 9, computes_loss=False)
        finding = RULE.from_batch(BatchFacts(2, {**TOKENS, "labels": LABELS}), model)
        assert finding.fix == 'target = batch.pop("labels"); loss = loss_fn(model(**batch), target)'

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
        with pytest.raises(NotApplicable, match="needs to know whether the model computes its own loss"):
            RULE.from_batch(BatchFacts(2, {**TOKENS, "labels": LABELS}), ModelFacts("Siamese", "keras", 9, 9))


class TestFromCrash:
    def test_names_the_inputs_and_the_labels_among_them(self):
        symptom = LabelsInInputsCrash(("token_ids", "padding_mask", "labels"), "labels")
        finding = RULE.from_crash(CRASH, symptom)
        assert finding.message == (
            'The loss gets no target: "labels" is among the inputs (token_ids, padding_mask and labels), '
            "which only the model gets. A loss given to compile() compares the prediction with a target; "
            "without one there is no loss, and nothing to compute a gradient from."
        )
        assert finding.fix.startswith(
            'dataset.to_tf_dataset(columns=["token_ids", "padding_mask"], label_cols=["labels"], ...), and a loss'
        )
        assert str(finding.where) == "train.py:31"

    def test_finds_the_labels_among_the_inputs_itself(self):
        finding = RULE.from_crash(CRASH, LabelsInInputsCrash(("token_ids", "label")))
        assert finding.evidence == {"inputs": ["token_ids", "label"], "labels": "label"}

    def test_says_so_if_no_input_is_called_one(self):
        finding = RULE.from_crash(CRASH, LabelsInInputsCrash(("token_ids", "mood")))
        assert finding.message.startswith(
            "The loss gets no target: the batch is one dict of inputs (token_ids and mood). If one of them holds "
            "the labels, only the model gets it. A loss"
        )

    def test_says_what_a_bare_text_leaves_open(self):
        finding = RULE.from_crash(replace(CRASH, live=False), LabelsInInputsCrash())
        assert finding.message == (
            "The loss probably got no target, because the labels are among the inputs, which only the "
            "model gets. Whether that is so, and which input holds the labels, cannot be read from the "
            "traceback's text: pass the exception to diagnostics.explain. A loss given to compile() "
            "compares the prediction with a target; without one there is no loss, and nothing to compute "
            "a gradient from."
        )
        assert finding.fix.startswith('dataset.to_tf_dataset(columns=[...], label_cols=["labels"], ...)')
        assert finding.evidence == {"inputs": [], "labels": None}

    def test_says_what_could_not_be_read_from_the_frames(self):
        finding = RULE.from_crash(CRASH, LabelsInInputsCrash())
        assert "holds the labels, could not be read from the exception's frames. A loss given" in finding.message


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
        assert finding.message == (
            "Number 24 of the 25 that were looked at in each row (the last one) is the target itself, in all 640 "
            "rows "
            "sampled, without exception. The model reads the answer from its input: its scores say nothing about "
            "data whose target is not known."
        )

    def test_as_a_code_of_the_class(self):
        assert copied(3, False).message.startswith(
            "Number 3 of the 25 that were looked at in each row has one value for each of the 2 classes, in all"
        )

    def test_silent_without_one(self):
        steps = np.arange(0, 200, 20)
        assert RULE.from_targets(TargetHistory("cross_entropy", steps, steps, steps, 640, 1)) is None


class TestCopiedTokens:
    def judge(self, share, source="src", trained=True):
        return RULE.from_answers(DependenceFacts(copy=CopyFacts("tgt", share, source, 9), trained=trained))

    def test_of_a_decoder_that_is_given_its_targets(self):
        finding = self.judge(1.0)
        assert finding.severity == "error"
        assert finding.message == (
            "The targets are the tokens of the input 'tgt' at the same position, and the trained model copies "
            "them: "
            "given random tokens there, it gives back 100% of them. It does not need its other input for that. "
            "When it is to write by itself there is nothing to copy."
        )

    def test_of_a_masked_model_from_which_no_token_is_hidden(self):
        copied = CopyFacts("input_ids", 0.99, None, 9, masked=True)
        finding = RULE.from_answers(DependenceFacts(copy=copied, trained=True)).for_library("torch")
        assert finding.severity == "warning"
        assert finding.message.endswith("it gives back 99% of them. No token is hidden from it.")
        assert finding.fix == "DataCollatorForLanguageModeling(tokenizer, mlm=True)"

    def test_silent_where_random_tokens_are_not_given_back(self):
        assert self.judge(0.5) is None
        assert self.judge(1.0, trained=False) is None

    def test_not_applicable_where_targets_are_no_input(self):
        with pytest.raises(NotApplicable, match="needs a model whose targets"):
            RULE.from_answers(DependenceFacts(trained=True))
