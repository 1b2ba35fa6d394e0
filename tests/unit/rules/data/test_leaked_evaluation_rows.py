import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.data import DatasetFacts, FitData, ShuffledSplit, SplitFacts
from diagnostics.facts.inputs import InputFacts, InputSample
from diagnostics.facts.loss_graph import LossGraph
from diagnostics.facts.metrics import MetricCall, MetricLedger
from diagnostics.facts.written import WrittenPatterns
from diagnostics.rules.data.leaked_evaluation_rows import LeakedEvaluationRows
from tests.support.sources import written

RULE = LeakedEvaluationRows()


class TestFires:
    def test_with_the_numbers(self):
        finding = RULE.from_splits(SplitFacts(4000, 4000, 500, 500, 60, ("premise", "hypothesis")))
        assert (finding.rule, finding.severity, finding.stage) == ("leaked-evaluation-rows", "warning", "data")
        assert finding.evidence == {
            "shared": 60,
            "evaluation_rows": 500,
            "evaluation_size": 500,
            "training_rows": 4000,
            "training_size": 4000,
            "compared": ["premise", "hypothesis"],
            "natural_share": 0.0,
        }

    @pytest.mark.parametrize("size", [1_000_000, None])
    def test_says_when_only_a_part_was_compared(self, size):
        assert RULE.from_splits(SplitFacts(4000, size, 500, 9000, 60, ("0",))).severity == "warning"

    def test_says_when_the_two_sets_are_one(self):
        assert RULE.from_splits(SplitFacts(2000, 2000, 512, 2000, 512, ("0",))).severity == "warning"

    def test_from_one_in_a_hundred_on(self):
        assert RULE.from_splits(SplitFacts(4000, 4000, 500, 500, 5, ("0", "1"))) is not None


class TestPairs:
    EDGES = np.array([(one, other) for one in range(20) for other in range(one + 1, 20)])

    def finding(self, trained, evaluated):
        call = MetricCall("roc_auc_score", np.ones(4), np.ones(4), pairs=(evaluated,))
        return RULE.from_pairs(LossGraph((), pairs=(trained,)), MetricLedger(calls=(call,)))

    def split(self, pairs, share=0.8):
        order = np.random.default_rng(0).permutation(len(pairs))
        cut = int(share * len(pairs))
        return pairs[order[:cut]], pairs[order[cut:]]

    def test_both_directions_split_at_random(self):
        finding = self.finding(*self.split(np.concatenate([self.EDGES, self.EDGES[:, ::-1]])))
        assert (finding.severity, finding.evidence["evaluation_rows"]) == ("warning", 76)
        assert finding.evidence["shared"] > 50

    def test_both_directions_of_a_split_of_pairs(self):
        trained, evaluated = self.split(self.EDGES)
        assert self.finding(np.concatenate([trained, trained[:, ::-1]]), evaluated) is None

    def test_evaluated_on_training_pairs(self):
        trained, _ = self.split(self.EDGES)
        both = np.concatenate([trained, trained[:, ::-1]])
        assert self.finding(both, both[::2]) is None

    def test_a_directed_graph_with_mutual_edges(self):
        assert self.finding(*self.split(np.concatenate([self.EDGES, self.EDGES[::2, ::-1]]))) is None

    def test_not_applicable_without_pairs(self):
        with pytest.raises(NotApplicable, match="pairs of ids"):
            RULE.from_pairs(LossGraph(()), MetricLedger())


class TestOnRowsThatRepeatByNature:
    # 13 repetitions in 512 rows: two rows are equal with probability 1e-4, so 10% of new rows are among 1024.
    REPEATING = DatasetFacts(1024, 512, distinct_rows=499)

    def test_it_is_only_a_note(self):
        finding = RULE.from_splits(SplitFacts(1024, 1024, 128, 128, 12, ("text",)), self.REPEATING)
        assert finding.severity == "note"
        assert finding.evidence["natural_share"] == 0.0982

    def test_it_is_a_warning_where_that_explains_less_than_half(self):
        assert RULE.from_splits(SplitFacts(1024, 1024, 128, 128, 26, ("text",)), self.REPEATING).severity == (
            "warning"
        )

    def test_it_is_a_warning_where_training_rows_differ(self):
        distinct = DatasetFacts(1024, 512, distinct_rows=512)
        assert RULE.from_splits(SplitFacts(1024, 1024, 128, 128, 12, ("text",)), distinct).severity == "warning"

    def test_it_is_a_warning_where_only_the_first_rows_were_read(self):
        first = DatasetFacts(1024, 512, spread_out=False, distinct_rows=499)
        assert RULE.from_splits(SplitFacts(1024, 1024, 128, 128, 12, ("text",)), first).severity == "warning"

    def test_it_is_only_a_note_where_each_of_few_rows_repeats_so_often_that_all_are_seen(self):
        few = DatasetFacts(4096, 512, distinct_rows=324)  # of 512 rows drawn from 512 states
        finding = RULE.from_splits(SplitFacts(4096, 4096, 512, 512, 512, ("0",)), few)
        assert finding.severity == "note"

    @pytest.mark.parametrize(("rows", "distinct"), [(540, 48), (1000, 9), (512, 190)])
    def test_it_is_only_a_note_where_a_grammar_makes_few_sentences(self, rows, distinct):
        few = DatasetFacts(rows, rows, distinct_rows=distinct)
        finding = RULE.from_splits(SplitFacts(rows, rows, 60, 60, 60, ("input_ids",)), few)
        assert finding.severity == "note"

    def test_it_is_a_warning_if_all_are_seen_of_rows_that_seldom_repeat(self):
        splits = SplitFacts(1024, 1024, 512, 1024, 512, ("text",))
        assert RULE.from_splits(splits, self.REPEATING).severity == "warning"

    def test_it_is_a_warning_where_measurements_were_copied_before_the_split(self):
        copied = DatasetFacts(1024, 512, distinct_rows=430)
        splits = SplitFacts(1024, 1024, 128, 128, 55, ("0",), fractions=True)
        finding = RULE.from_splits(splits, copied)
        assert finding.severity == "warning"
        assert RULE.from_splits(SplitFacts(1024, 1024, 128, 128, 55, ("0",)), copied).severity == "note"


class TestOnInputsThatCanFormFewRows:
    def test_it_is_only_a_note(self):
        splits = SplitFacts(512, 512, 512, 512, 512, ("0",), distinct_training_rows=512, possible_rows=512)
        finding = RULE.from_splits(splits)
        assert finding.severity == "note"

    def test_it_is_a_warning_where_the_training_set_holds_few_of_them(self):
        splits = SplitFacts(64, 64, 64, 64, 64, ("0",), distinct_training_rows=64, possible_rows=512)
        assert RULE.from_splits(splits).severity == "warning"


class TestStaysSilent:
    @pytest.mark.parametrize(("rows", "shared"), [(500, 0), (50, 4), (1000, 9)])
    def test_on_few(self, rows, shared):
        assert RULE.from_splits(SplitFacts(4000, 4000, rows, rows, shared, ("text",))) is None


class TestNotApplicable:
    @pytest.mark.parametrize("splits", [SplitFacts(0, 0, 9, 9, 0, ("a",)), SplitFacts(9, 9, 0, 0, 0, ("a",))])
    def test_without_rows(self, splits):
        with pytest.raises(NotApplicable):
            RULE.from_splits(splits)

    def test_without_common_columns(self):
        with pytest.raises(NotApplicable):
            RULE.from_splits(SplitFacts(100, 100, 100, 100, 100, ()))


class TestSource:
    def test_an_evaluation_loader_of_the_training_part(self):
        unread = written("unread_splits", "val_set", "train_set", "val_loader", "made", line=12)
        finding = RULE.from_source(unread)
        assert (finding.rule, finding.severity, str(finding.where)) == (
            "leaked-evaluation-rows",
            "warning",
            "train.py:12",
        )

    @pytest.mark.parametrize(("by", "how"), [("val_accuracy", "computed"), ("validate", "iterated")])
    def test_an_evaluation_of_the_training_data(self, by, how):
        assert (
            RULE.from_source(written("unread_splits", "val_loader", "train_loader", by, how)).severity == "warning"
        )

    def test_silent_where_all_parts_are_read(self):
        assert RULE.from_source(WrittenPatterns()) is None


class TestWindows:
    def test_that_overlap_with_training_windows(self):
        finding = RULE.from_splits(SplitFacts(692, 692, 173, 173, 0, ("0",), overlapping=170))
        assert finding.severity == "warning"

    def test_that_are_few_are_no_news(self):
        assert RULE.from_splits(SplitFacts(692, 692, 173, 173, 0, ("0",), overlapping=30)) is None


class TestNearCopies:
    def judge(self, copies):
        rng = np.random.default_rng(0)
        rows = np.repeat(rng.normal(size=(1200 // copies, 12)), copies, axis=0)
        rows = rng.permutation(rows + 0.05 * rng.normal(size=rows.shape)).astype(np.float32)
        sides = (
            {"0": InputSample(tuple(rows[start : start + 100, :, None] for start in places), 12, traits=traits)}
            for places in (range(0, 900, 100), range(900, 1200, 100))
            for traits in [tuple(rows[start : start + 100] for start in places)]
        )
        return RULE.from_inputs(InputFacts(*sides, 1, 2))

    def test_of_most_evaluation_rows_are_a_warning(self):
        finding = self.judge(4)
        assert (finding.rule, finding.severity) == ("leaked-evaluation-rows", "warning")
        assert finding.evidence["evaluation_rows"] == 300
        assert finding.evidence["near"] > 250

    def test_are_not_found_among_rows_that_were_never_copied(self):
        assert self.judge(1) is None


def test_fires_on_two_cuts_of_a_shuffle_that_is_reshuffled():
    finding = LeakedEvaluationRows().from_pipeline(ShuffledSplit("skip", "take"))
    assert finding.severity == "warning"


def test_fires_on_one_object_for_both():
    finding = LeakedEvaluationRows().from_same(FitData("tf.data.Dataset", validates=True))
    assert finding.severity == "warning"
