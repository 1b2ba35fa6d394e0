import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.data import LossMissing, TargetMissing
from diagnostics.facts.pipeline import BatchFacts, ModelFacts
from diagnostics.rules.data.labels_missing import LabelsMissing

RULE = LabelsMissing()
NAMES = ("input_ids", "attention_mask", "labels")
BERT = ModelFacts("BertForSequenceClassification", "transformers", 9, 9, input_names=NAMES, computes_loss=True)
TOKENS = {"input_ids": np.ones((2, 5), int), "attention_mask": np.ones((2, 5), int)}
CRASH = CrashFacts(
    "ValueError",
    "The model did not return a loss from the inputs, only the following keys: logits.",
    (FrameFacts("train.py", 31, "main", yours=True),),
    live=False,
)


class TestFromBatch:
    def test_names_the_model_and_what_the_batch_holds(self):
        finding = RULE.from_batch(BatchFacts(2, TOKENS), BERT)
        assert finding.severity == "error"
        assert finding.evidence == {"inputs": ["input_ids", "attention_mask"]}

    @pytest.mark.parametrize(
        "batch",
        [
            BatchFacts(2, TOKENS, np.array([0, 1]), "labels"),
            BatchFacts(2, TOKENS, None, "labels"),  # an object detector's: a list of dicts, no array
            BatchFacts(2, {**TOKENS, "labels": np.array([0, 1])}),
        ],
        ids=["an array", "known by name only", "among the inputs"],
    )
    def test_is_silent_where_there_are_labels(self, batch):
        assert RULE.from_batch(batch, BERT) is None

    @pytest.mark.parametrize("computes_loss", [None, False])
    def test_leaves_alone_a_loop_whose_loss_comes_from_elsewhere(self, computes_loss):
        model = ModelFacts("Bert", "transformers", 9, 9, input_names=NAMES, computes_loss=computes_loss)
        with pytest.raises(NotApplicable):
            RULE.from_batch(BatchFacts(2, TOKENS), model)

    @pytest.mark.parametrize(
        "model",
        [
            ModelFacts("MLP", "torch", 9, 9, input_names=NAMES, computes_loss=True),
            ModelFacts("CLIPModel", "transformers", 9, 9, input_names=("input_ids",), computes_loss=True),
        ],
        ids=["not transformers", "takes no labels"],
    )
    def test_needs_a_transformers_model_that_takes_labels(self, model):
        with pytest.raises(NotApplicable):
            RULE.from_batch(BatchFacts(2, TOKENS), model)


class TestFromCrash:
    def test_names_what_the_model_was_given_and_what_it_gave_back(self):
        finding = RULE.from_crash(CRASH, LossMissing(("logits",), ("input_ids", "attention_mask")))
        assert finding.evidence == {"received": ["input_ids", "attention_mask"], "returned": ["logits"]}
        assert str(finding.where) == "train.py:31 in main"

    def test_says_so_if_neither_is_known(self):
        assert RULE.from_crash(CRASH, LossMissing()).severity == "error"

    @pytest.mark.parametrize(
        ("unread", "said"),
        [
            (
                ("score",),
                'rename the target column to "labels": dataset = dataset.rename_column("score", "labels")',
            ),
            (("idx", "score"), "rename the target column (perhaps idx or score) to"),
            ((), 'dataset = dataset.rename_column("YOUR_TARGET_COLUMN", "labels")'),
        ],
        ids=["one", "several", "unknown"],
    )
    def test_names_the_column_that_may_hold_them(self, unread, said):
        symptom = LossMissing(("logits",), ("input_ids",), unread)
        assert said in RULE.from_crash(CRASH, symptom).fix

    def test_is_silent_if_the_labels_were_there(self):
        symptom = LossMissing(("last_hidden_state",), ("input_ids", "labels"))
        assert RULE.from_crash(CRASH, symptom) is None


class TestFromFit:
    CRASH = CrashFacts("ValueError", "None values not supported.", CRASH.frames, live=True)

    def test_names_the_inputs_that_fit_was_given(self):
        finding = RULE.from_fit(self.CRASH, TargetMissing(("token_ids", "padding_mask")))
        assert finding.evidence == {"received": ["token_ids", "padding_mask"]}
        assert str(finding.where) == "train.py:31 in main"

    def test_does_without_names(self):
        assert RULE.from_fit(self.CRASH, TargetMissing()).severity == "error"
