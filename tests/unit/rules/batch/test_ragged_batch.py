from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.data import RaggedColumns
from diagnostics.rules.batch.ragged_batch import RaggedBatch

RULE = RaggedBatch()
FRAMES = (FrameFacts("train.py", 31, "<module>", yours=True),)
MESSAGE = "expected sequence of length 11 at dim 1 (got 13)"
LIVE = CrashFacts("ValueError", MESSAGE, FRAMES, live=True)
TEXT = CrashFacts("ValueError", MESSAGE, FRAMES, live=False)


class TestFromCrash:
    def test_names_columns_with_their_shortest_and_longest(self):
        lengths = {"input_ids": (11, 13, 9), "attention_mask": (11, 13, 9), "tags": (4, 5, 4)}
        finding = RULE.from_crash(LIVE, RaggedColumns(lengths, (11, 13)))
        assert finding.severity == "error"
        assert finding.evidence == {
            "lengths": {"input_ids": [11, 13, 9], "attention_mask": [11, 13, 9], "tags": [4, 5, 4]},
            "clash": [11, 13],
        }
        assert str(finding.where) == "train.py:31"

    def test_counts_the_items_of_a_tuple(self):
        assert RULE.from_crash(LIVE, RaggedColumns({"0": (3, 5)})).severity == "error"

    def test_names_collators_that_pad_labels_where_labels_differ(self):
        assert RULE.from_crash(LIVE, RaggedColumns({"input_ids": (3, 5), "labels": (3, 5)})).severity == "error"

    def test_says_what_the_text_leaves_open(self):
        assert RULE.from_crash(TEXT, RaggedColumns(clash=(11, 13))).severity == "error"

    def test_names_shapes_where_examples_have_several_axes(self):
        worker = FrameFacts("torch/utils/data/_utils/worker.py", 374, "_worker_loop")
        crash = CrashFacts("RuntimeError", "stack expects", (*FRAMES, worker), live=False)
        finding = RULE.from_crash(crash, RaggedColumns(clash=(8, 9), shapes=((3, 8, 8), (3, 8, 9))))
        assert finding.message == (
            "One example has shape [3, 8, 8] and another [3, 8, 9], so they cannot be stacked into one batch. A "
            "tensor is rectangular, and nothing resizes the examples to the same shape. The name of the column "
            "and the sizes of the other examples cannot be read from the traceback text: pass the exception to "
            "diagnostics.explain. A DataLoader worker passes on only the error's text: set num_workers=0 to see "
            "more."
        )

    def test_says_so_if_not_even_two_lengths_are_known(self):
        finding = RULE.from_crash(LIVE, RaggedColumns())
        assert finding.evidence == {"lengths": {}, "clash": []}

    def test_names_the_column_that_the_message_names(self):
        finding = RULE.from_crash(TEXT, RaggedColumns(column="label"))
        assert finding.evidence == {"lengths": {}, "clash": [], "column": "label"}

    def test_speaks_keras_to_keras(self):
        frames = (*FRAMES, FrameFacts("tensorflow/python/data/ops/iterator_ops.py", 826, "__next__"))
        crash = CrashFacts("InvalidArgumentError", "Cannot batch tensors", frames, live=True)
        assert RULE.from_crash(crash, RaggedColumns(clash=(3, 4), column="ids")).severity == "error"
        assert RULE.from_crash(crash, RaggedColumns({"ids": (3, 4)})).severity == "error"
