import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import RowLedger, Verdicts
from diagnostics.facts.data import DatasetFacts, DatasetLength, FitData
from diagnostics.facts.loss_graph import LEAF, LossGraph, Node, Operand, RowsRead
from diagnostics.facts.pipeline import BatchFacts, ModelFacts
from diagnostics.facts.where import Where
from diagnostics.rules.batch.repeated_batch import RepeatedBatch
from tests.support.courses import history, judge

RULE = RepeatedBatch()
IMAGES = BatchFacts(16, {"0": np.random.default_rng(0).random((16, 1, 8, 8))})
SENTENCES = BatchFacts(16, {"input_ids": np.random.default_rng(0).integers(5, 90, (16, 20))})


def rows(distinct: int | None, read: int, size: int | None = None) -> DatasetFacts:
    return DatasetFacts(size, read, distinct_rows=distinct)


class TestOneRow:
    def test_fires_on_an_index_that_is_ignored(self):
        finding = RULE.from_dataset(rows(1, 500, 5000), IMAGES)
        assert (finding.rule, finding.severity, finding.stage) == ("repeated-batch", "warning", "batch")
        assert finding.evidence == {"distinct_rows": 1, "rows_read": 500, "size": 5000}

    def test_is_silent_on_two(self):
        assert RULE.from_dataset(rows(2, 500), IMAGES) is None

    def test_needs_eight_rows(self):
        assert RULE.from_dataset(rows(1, 8), IMAGES) is not None
        with pytest.raises(NotApplicable):
            RULE.from_dataset(rows(1, 7), IMAGES)

    def test_needs_rows_that_can_be_compared(self):
        with pytest.raises(NotApplicable):
            RULE.from_dataset(rows(None, 500), IMAGES)


class TestSampler:
    def test_fires_on_a_weight_per_class(self):
        finding = RULE.from_weights(DatasetFacts(1000, 500, weighted_sampling=True, sampling_weights=3))
        assert (finding.severity, finding.evidence["weights"]) == ("warning", 3)

    def test_is_silent_on_a_weight_per_row(self):
        assert RULE.from_weights(DatasetFacts(1000, 500, weighted_sampling=True, sampling_weights=1000)) is None

    def test_needs_the_sampler(self):
        with pytest.raises(NotApplicable):
            RULE.from_weights(DatasetFacts(1000, 500))


class TestOneBatch:
    @pytest.mark.parametrize("batch", [IMAGES, SENTENCES], ids=["images", "sentences"])
    def test_fires_on_a_generator_of_one_batch(self, batch):
        finding = RULE.from_batch(rows(16, 64), batch)
        assert finding.evidence == {"distinct_rows": 16, "rows_read": 64, "size": None, "batch_size": 16}

    def test_fires_on_fewer_than_one_in_twenty(self):
        assert RULE.from_batch(rows(12, 256), IMAGES) is not None
        assert RULE.from_batch(rows(13, 256), IMAGES) is None

    @pytest.mark.parametrize("distinct", [15, 17, 60, 64])
    def test_is_silent_where_batches_can_differ(self, distinct):
        assert RULE.from_batch(rows(distinct, 64), IMAGES) is None

    @pytest.mark.parametrize(
        "values",
        [
            np.random.default_rng(0).integers(0, 2, (16, 3)).astype(np.float32),
            np.eye(32, dtype=np.float32)[:16],
            np.random.default_rng(0).random((16, 4)),
            np.arange(16),
        ],
        ids=["three yes-or-no columns", "one-hot categories", "settings of an experiment", "one category"],
    )
    def test_is_silent_on_tables_with_few_possible_rows(self, values):
        assert RULE.from_batch(rows(8, 512), BatchFacts(16, {"0": values})) is None

    def test_is_silent_on_arrays_of_keras_whose_rows_repeat(self):
        keras = ModelFacts("Sequential", "keras", 9, 9)
        assert RULE.from_batch(rows(10, 512), IMAGES, keras) is None
        assert RULE.from_batch(rows(16, 512), IMAGES, keras) is not None

    def test_notes_a_container_that_repeats_its_rows(self):
        finding = RULE.from_batch(DatasetFacts(1500, 512, distinct_rows=7, stored=True), SENTENCES)
        assert finding.severity == "note"

    def test_leaves_a_single_row_to_the_other_way(self):
        assert RULE.from_batch(rows(1, 512), IMAGES) is None

    def test_needs_some_batches_worth_of_rows(self):
        with pytest.raises(NotApplicable):
            RULE.from_batch(rows(16, 63), IMAGES)


class TestWhileTraining:
    def run(self, prints, **known):
        return history([1.0] * len(prints), prints=np.array(prints, np.uint64), **known)

    def test_fires_where_every_step_had_the_same_batch(self):
        finding = judge(RULE.from_history, self.run([7] * 60))
        assert (finding.rule, finding.severity) == ("repeated-batch", "note")
        assert finding.evidence == {"steps": 60, "batch_size": 32}

    def test_is_silent_on_two_batches_in_turn(self):
        assert judge(RULE.from_history, self.run([7, 8] * 30)) is None

    def test_is_not_applicable_to_a_short_run(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_history, self.run([7] * 19))

    def test_is_not_applicable_to_an_accumulation_of_which_only_the_last_batch_is_compared(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_history, self.run([7] * 60, passes=np.full(60, 8)))


class TestBesideTheDataset:
    VERDICTS = Verdicts(frozenset(), frozenset())

    def course(self, dataset, prints=None, drawn=None, verdicts=VERDICTS):
        run = history([1.0] * 60, prints=np.full(60, 7, np.uint64) if prints is None else prints)
        return judge(RULE.from_course, run, dataset, verdicts, drawn)

    def test_warns_where_the_loader_has_more_rows_than_the_one_batch(self):
        finding = self.course(rows(512, 512, 2000))
        assert finding.severity == "warning"

    def test_warns_where_a_sampler_draws_four_rows(self):
        assert (
            self.course(
                rows(512, 512, 2363), np.arange(1, 61, dtype=np.uint64), RowLedger(drawn=320, distinct=4, steps=10)
            ).severity
            == "warning"
        )

    @pytest.mark.parametrize("dataset", [rows(32, 32, 32), rows(64, 64, 64), rows(32, 512, 2000)])
    def test_is_silent_where_the_dataset_fits_into_the_batch(self, dataset):
        assert self.course(dataset) is None

    @pytest.mark.parametrize(
        "drawn",
        [
            RowLedger(drawn=320, distinct=300, steps=10),
            RowLedger(drawn=320, distinct=64, steps=10),
            RowLedger(drawn=320, distinct=41, steps=10),
        ],
    )
    def test_is_silent_where_rows_go_round(self, drawn):
        assert self.course(rows(64, 64, 64), np.arange(1, 61, dtype=np.uint64), drawn) is None

    def test_needs_a_run_that_was_not_cut_off(self):
        with pytest.raises(NotApplicable):
            self.course(rows(512, 512, 2000), verdicts=Verdicts(frozenset(), frozenset(), complete=False))


class TestFromLength:
    """Of a dataset whose rows were not read, because its code could be noticed."""

    def judged(self, length, batch_size=32, prints=7):
        run = history([1.0] * 60, prints=np.full(60, prints, np.uint64) if np.ndim(prints) == 0 else prints)
        return judge(RULE.from_length, run, DatasetLength(length, batch_size), Verdicts(frozenset(), frozenset()))

    def test_warns_where_an_iterator_is_made_in_each_step(self):
        finding = self.judged(1600)
        assert finding.severity == "warning"

    def test_silent_on_a_dataset_of_a_few_batches_and_on_batches_that_differ(self):
        assert self.judged(127) is None
        assert self.judged(1600, prints=np.arange(1, 61, dtype=np.uint64)) is None

    def test_a_dataset_that_gives_whole_batches_is_not_judged(self):
        with pytest.raises(NotApplicable):
            self.judged(1000, batch_size=2)


class TestOneToken:
    """Texts of which nothing is left but the unknown token."""

    MODEL = ModelFacts("Net", "torch", 9, 9, embedding_rows=10)
    IDS = np.where(np.arange(10) < np.array([10, 8, 10, 5])[:, None], 1, 0)

    def batch(self, ids, name="0"):
        return BatchFacts(len(ids), {name: ids})

    def test_is_named_and_not_the_sampler(self):
        finding = RULE.from_dataset(rows(1, 512, 600), self.batch(np.ones((30, 10), int)), self.MODEL)
        assert finding.evidence == {"only_token": 1}

    def test_is_named_beside_padding_and_special_tokens(self):
        ids = np.tile(self.IDS, (4, 1))
        ids[:, 0] = 7
        finding = RULE.from_batch(rows(3, 512), self.batch(ids), self.MODEL)
        assert finding.evidence == {"only_token": 1}

    def test_is_not_named_for_flags_of_a_table(self):
        flags = np.random.default_rng(0).integers(0, 2, (16, 4))
        assert RULE.from_batch(rows(16, 512), self.batch(flags)) is None

    def test_is_not_named_where_tokens_differ(self):
        ids = np.random.default_rng(0).integers(1, 9, (16, 20))
        assert RULE.from_dataset(rows(1, 512), self.batch(ids), self.MODEL).severity == "warning"

    def test_is_named_for_batches_that_are_all_the_same(self):
        finding = judge(
            RULE.from_length,
            history([1.0] * 60, prints=np.full(60, 5, np.uint64), batch_sizes=np.full(60, 30)),
            DatasetLength(600, 30),
            Verdicts(frozenset(), frozenset()),
            self.batch(np.ones((30, 10), int), "input_ids"),
        )
        assert finding.evidence == {"only_token": 1}


class TestRowsMadeAlike:
    """Different rows that are the same once they are a batch; `TestLength` has those that a loop repeats."""

    def judged(self, inputs, labels):
        return judge(
            RULE.from_length,
            history([1.0] * 60, prints=np.full(60, 5, np.uint64), batch_sizes=np.full(60, 30)),
            DatasetLength(600, 30),
            Verdicts(frozenset(), frozenset()),
            BatchFacts(len(labels), {"0": inputs}, labels),
        )

    def test_are_blamed_on_what_makes_them(self):
        finding = self.judged(np.ones((30, 20), np.float32), np.arange(30) % 2)
        assert finding.severity == "warning"
        assert (finding.evidence["distinct_rows_in_batch"], finding.evidence["batch_size"]) == (1, 30)

    def test_are_not_assumed_when_the_labels_repeat_as_well(self):
        finding = self.judged(np.ones((30, 20), np.float32), np.zeros(30, int))
        assert "distinct_rows_in_batch" not in finding.evidence

    def test_are_not_assumed_of_a_batch_of_different_rows(self):
        inputs = np.random.default_rng(0).random((30, 20)).astype(np.float32)
        assert "distinct_rows_in_batch" not in self.judged(inputs, np.arange(30) % 2).evidence


class TestMaskOfIntegers:
    """An index of zeros and ones, which reads rows 0 and 1 of the predictions."""

    ZEROS_AND_ONES = RowsRead(600, 600, {0: 480, 1: 120})

    def judged(self, rows, *further, operation="Index", source="Addmm"):
        """Judge the mean of the rows that are looked up in what an operation with weights has returned."""
        return judge(
            RULE.from_graph,
            LossGraph(
                (
                    Node("Mean", (), (Operand(1), *(Operand(4 + n) for n, _ in enumerate(further)))),
                    Node(operation, (600, 4), (Operand(2, (600, 4)),), rows=rows),
                    Node(source, (600, 4), (Operand(3),)),
                    Node(LEAF, (4, 8)),
                    *further,
                )
            ),
        )

    @pytest.mark.parametrize("operation", ["Index", "IndexSelect", "GatherV2"])
    def test_is_named_with_how_often_each_row_is_read(self, operation):
        finding = self.judged(self.ZEROS_AND_ONES, operation=operation)
        assert finding.severity == "warning"
        assert finding.evidence == {"rows": 600, "rows_read": 2, "times": [480, 120]}

    @pytest.mark.parametrize(
        "rows",
        [
            RowsRead(600, 600, None),
            RowsRead(600, 600, {0: 200, 1: 200, 2: 200}),
            RowsRead(600, 600, {1: 480, 2: 120}),
            RowsRead(600, 32, {0: 16, 1: 16}),
            RowsRead(2, 600, {0: 480, 1: 120}),
            RowsRead(7, 7, {0: 4, 1: 3}),
        ],
        ids=["many rows", "three rows", "other rows", "of a batch", "all rows there", "few rows"],
    )
    def test_is_not_any_other_index(self, rows):
        assert self.judged(rows) is None

    def test_does_no_harm_where_other_rows_are_read_as_well(self):
        assert self.judged(self.ZEROS_AND_ONES, Node("Sum", (), (Operand(2, (600, 4)),))) is None

    def test_may_read_a_table_of_weights(self):
        assert self.judged(self.ZEROS_AND_ONES, source="ReadVariableOp") is None

    def test_needs_a_lookup(self):
        with pytest.raises(NotApplicable):
            RULE.from_graph(LossGraph((Node("Mean", ()),)))


def test_fires_on_a_hook_that_nothing_calls():
    hook = FitData(
        "Tiles",
        hook="on_epoch_start",
        hooks=("on_epoch_begin", "on_epoch_end"),
        where=Where("train.py", 7, "Tiles"),
    )
    finding = RULE.from_hooks(hook)
    assert (finding.severity, finding.evidence["hook"], str(finding.where)) == (
        "warning",
        "on_epoch_start",
        "train.py:7 in Tiles",
    )


def test_says_nothing_of_data_without_such_a_hook():
    with pytest.raises(NotApplicable):
        RULE.from_hooks(FitData("Tiles", validates=True))
