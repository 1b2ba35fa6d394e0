"""Unit tests of `LabelsUnrelated`."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import RowLedger, SimpleFit, TargetHistory
from diagnostics.facts.data import OrientedPairs
from diagnostics.facts.dependence import DependenceFacts
from diagnostics.facts.inputs import Vocabulary
from diagnostics.facts.pipeline import BatchFacts, ModelFacts, OutputFacts
from diagnostics.facts.where import Where
from diagnostics.facts.written import WrittenPatterns
from diagnostics.rules.data.labels_unrelated import LabelsUnrelated
from tests.support.sources import written

RULE = LabelsUnrelated()
DEALT = RowLedger(rows=80, compared=200, changed=130, of_others=130, chance=0.66, apart=0.99, nearby=1.0)

APART = written("shuffled_apart", "images", "labels", line=8)


MAYBE = WrittenPatterns((dataclasses.replace(APART.patterns[0], by_name=True),))


def course(loss, fit_error=None):
    losses = np.full(8, loss)
    fit = None if fit_error is None else SimpleFit(150, 150, 0.6, fit_error, linear=True, of_classes=True)
    return TargetHistory("cross_entropy", np.arange(8), losses, np.full(8, 1.1), 256, 3, fit)


class TestFires:
    def test_on_inputs_that_the_collator_moved_alone(self):
        finding = RULE.from_order(RowLedger(in_batch=32, moved=31, unpaired=12, collated=True))
        assert (finding.rule, finding.severity) == ("labels-unrelated", "error")

    def test_on_inputs_that_the_script_moved_alone(self):
        assert RULE.from_order(RowLedger(in_batch=32, moved=31, unpaired=12, collated=False)).severity == "error"

    def test_on_targets_that_are_dealt_out_anew(self):
        finding = RULE.from_rows(DEALT)
        assert (finding.rule, finding.severity, finding.stage) == ("labels-unrelated", "error", "data")

    def test_in_a_loop_that_ends_at_a_constant_answer(self):
        assert RULE.from_rows(DEALT, course(1.1)) is not None

    def test_on_two_shuffles_in_a_row(self):
        finding = RULE.from_source(APART, course(1.1))
        assert finding.where == Where("train.py", 8, "<module>")

    @pytest.mark.parametrize("pattern", [APART, MAYBE], ids=["surely", "maybe"])
    def test_on_rows_that_were_memorised(self, pattern):
        finding = RULE.from_source(pattern, course(0.1, fit_error=0.58))
        assert (finding.severity, finding.evidence["fit_error"]) == ("error", 0.58)


class TestSilent:
    def test_on_rows_that_keep_their_targets(self):
        assert RULE.from_rows(dataclasses.replace(DEALT, changed=0, of_others=0)) is None

    def test_on_noisy_labels(self):
        assert RULE.from_rows(dataclasses.replace(DEALT, changed=50)) is None

    def test_on_one_of_several_answers_each_time(self):
        several = RowLedger(
            rows=500, compared=2000, changed=1200, of_others=1200, chance=0.66, apart=0.9, nearby=1.0
        )
        assert RULE.from_rows(several) is None

    def test_on_one_of_several_pictures_of_the_same_each_time(self):
        assert RULE.from_rows(dataclasses.replace(DEALT, changed=200, chance=1.0, apart=0.1)) is None

    def test_on_targets_that_are_fresh(self):
        assert RULE.from_rows(dataclasses.replace(DEALT, changed=200, of_others=3)) is None

    def test_on_episodes_that_number_their_classes_anew_and_learn(self):
        assert RULE.from_rows(DEALT, course(0.95)) is None

    def test_on_two_shuffles_after_which_the_run_learned(self):
        assert RULE.from_source(APART, course(0.95)) is None

    @pytest.mark.parametrize("loss", [0.1, 1.1])
    @pytest.mark.parametrize("pattern", [APART, MAYBE], ids=["surely", "maybe"])
    def test_on_two_shuffles_of_rows_that_a_fit_predicts(self, pattern, loss):
        assert RULE.from_source(pattern, course(loss, fit_error=0.2)) is None

    def test_on_lists_that_may_be_unpaired_without_a_measurement(self):
        assert RULE.from_source(MAYBE) is None
        assert RULE.from_source(MAYBE, course(1.1)) is None

    def test_on_a_source_without_them(self):
        assert RULE.from_source(WrittenPatterns()) is None

    def test_on_tasks_that_each_have_targets_of_their_own(self):
        assert RULE.from_rows(dataclasses.replace(DEALT, nearby=0.5)) is None

    def test_on_targets_that_are_all_the_same(self):
        assert RULE.from_rows(dataclasses.replace(DEALT, changed=0, of_others=0, chance=0.0)) is None


def test_needs_rows_that_came_again():
    with pytest.raises(NotApplicable):
        RULE.from_rows(dataclasses.replace(DEALT, rows=31))


def test_names_inputs_that_are_filtered_alone():
    cut = written("cut_targets", "X", "y", "y = y[:len(X)]", line=7)
    assert RULE.from_source(cut, course(0.5)).severity == "error"


WORDS = np.array([6, 7, 8, 9, 6, 7, 8, 9, 6, 8])  # in each row
TOKENS = 2 * WORDS + 2  # two pieces of each word, a start token and an end
at = np.arange(TOKENS.max())
MASK = (at < TOKENS[:, None]).astype(int)
IDS = np.where(at == 0, 2, np.where(at == TOKENS[:, None] - 1, 3, 10 + at)) * MASK
TAGS = np.random.default_rng(0).integers(0, 3, (len(WORDS), TOKENS.max()))
OF_WORDS = np.where(at < WORDS[:, None], TAGS, -100)
ONE_EARLY = np.where(at < TOKENS[:, None] - 2, TAGS, -100)  # one for each piece
TAGGER = ModelFacts("DistilBertForTokenClassification", "transformers", 9, 9, embedding_rows=60)


def tagger(tags, ids=IDS, mask=MASK, classes=3):
    batch = BatchFacts(len(ids), {"input_ids": ids, "attention_mask": mask}, tags, "labels")
    return batch, OutputFacts((*ids.shape, classes), classes), TAGGER


class TestEarlyTags:
    def judge(self, tags, ids=IDS, ahead=True):
        return RULE.from_early_tags(*tagger(tags, ids), DependenceFacts(reads_ahead=ahead))

    def test_of_pieces_one_position_early(self):
        finding = self.judge(ONE_EARLY)
        assert (finding.severity, finding.evidence["tags_of_it"]) == ("warning", 3)
        assert finding.message.startswith("The tags are one position too early: the start token (id 2)")

    @pytest.mark.parametrize("ahead", [False, None], ids=["causal", "unknown"])
    def test_needs_a_model_that_reads_ahead(self, ahead):
        with pytest.raises(NotApplicable):
            self.judge(ONE_EARLY, ahead=ahead)

    @pytest.mark.parametrize(
        "tags",
        [
            np.where(at < TOKENS[:, None] - 1, TAGS, -100),
            np.where(at == 3, -100, ONE_EARLY),
            np.where(at == 0, 1, ONE_EARLY),
            np.where(at == 0, -100, np.where(MASK == 1, TAGS, -100)),
        ],
        ids=["one more", "some without", "start of one tag", "behind the start"],
    )
    def test_silent_on_other_tags(self, tags):
        assert self.judge(tags) is None

    def test_silent_without_an_end_token(self):
        assert self.judge(ONE_EARLY, ids=np.where(IDS == 3, 40 + TAGS, IDS)) is None


class TestTags:
    def judge(self, tags, ids=IDS, mask=MASK, classes=3):
        return RULE.from_tags(*tagger(tags, ids, mask, classes))

    @pytest.mark.parametrize("behind", [-100, 0], ids=["ignored", "no entity"])
    def test_of_words_at_the_places_of_their_pieces(self, behind):
        finding = self.judge(np.where(at < WORDS[:, None], TAGS, behind))
        assert (finding.severity, finding.evidence["tags_of_it"]) == ("warning", 3)

    def test_of_words_whose_first_is_never_an_entity(self):
        finding = self.judge(np.where(at == 0, 0, OF_WORDS))
        assert finding.severity == "warning"
        assert (finding.evidence["fewest_without"], finding.evidence["most_without"]) == (8, 11)

    @pytest.mark.parametrize("separated", [False, True])
    def test_not_of_the_first_of_two_texts(self, separated):
        ids = np.where((at == 3) & separated, 3, IDS)
        assert (self.judge(np.where(at == 0, 0, OF_WORDS), ids=ids) is None) == separated

    @pytest.mark.parametrize(
        "tags",
        [
            np.where(
                (at == 0) | (at > TOKENS[:, None] - 4), np.where(at == 0, 0, -100), ONE_EARLY
            ),  # three without
            np.where(at == 3, -100, np.where(at == 0, 0, OF_WORDS)),  # with a gap
            np.where(at == 0, 0, np.where(MASK == 1, TAGS, -100)),  # the start token is no entity
            np.where(at == 0, -100, OF_WORDS),
            np.where(at == 0, TAGS, -100),  # one tag for the row, at its start token
            np.where(MASK == 1, TAGS, -100),  # tags up to the end, as of a task that answers from the start on
            np.full_like(TAGS, 1),
        ],
        ids=[
            "three without",
            "with a gap",
            "start of none",
            "start ignored",
            "of the row",
            "to the end",
            "all alike",
        ],
    )
    def test_where_they_belong_to_their_tokens(self, tags):
        assert self.judge(tags) is None

    @pytest.mark.parametrize(
        "given",
        [
            {"classes": 60},
            {"ids": np.where(at == 4, 2, IDS)},
            {"ids": IDS + at[: len(IDS), None]},
            {"tags": OF_WORDS[:, 0]},
        ],
    )
    def test_needs_tags_behind_a_start_token(self, given):
        with pytest.raises(NotApplicable):
            self.judge(**({"tags": OF_WORDS} | given))


class TestTagsInsideWords:
    BEHIND = np.where((at > 0) & (at <= WORDS[:, None]), TAGS, -100)

    def judge(self, tags, marks=("", "##"), special=frozenset({0, 2, 3}), ids=IDS):
        batch, outputs, model = tagger(tags, ids)
        words = {id: f"{marks[1 - id % 2]}{id}" for id in range(10, 30)} | {0: "[PAD]", 2: "[CLS]", 3: "[SEP]"}
        vocabulary = Vocabulary("BertTokenizerFast", "input_ids", 1, special, 60, words)
        return RULE.from_tags(dataclasses.replace(batch, vocabulary=vocabulary), outputs, model)

    @pytest.mark.parametrize("marks", [("", "##"), (" ", "")], ids=["WordPiece", "byte-level BPE"])
    def test_fires_on_one_for_each_word_behind_the_start_token(self, marks):
        finding = self.judge(self.BEHIND, marks)
        assert (finding.severity, finding.evidence["fewest_without"]) == ("warning", 7)
        assert "begin right after the start token" in finding.message

    def test_fires_if_some_rows_were_cut_off(self):
        assert self.judge(np.where((at == WORDS[:, None]) & (WORDS == 9)[:, None], -100, self.BEHIND)) is not None

    @pytest.mark.parametrize(
        "tags",
        [
            np.where((IDS % 2 == 1) & (at > 0) & (IDS != 3), TAGS, -100),
            np.where((at > 0) & (at < TOKENS[:, None] - 1), TAGS, -100),
            np.where((at > 0) & (at <= 2 * (WORDS[:, None] // 3)), TAGS, -100),
            np.where((at > 0) & (at <= WORDS[:, None] + 1), TAGS, -100),
        ],
        ids=["first subwords", "all subwords", "those of a first sentence", "one too many"],
    )
    def test_silent_on(self, tags):
        assert self.judge(tags) is None

    def test_silent_if_only_the_last_word_is_split(self):
        ids = np.where((at > 0) & (IDS > 3), np.where(at <= WORDS[:, None], 11 + 2 * (at // 2), 12), IDS)
        assert self.judge(self.BEHIND, ids=ids) is None

    @pytest.mark.parametrize("marks", [("", ""), ("", "@@")], ids=["no mark", "another mark"])
    def test_silent_if_it_is_not_known_where_words_begin(self, marks):
        assert self.judge(self.BEHIND, marks) is None


class TestOrientedPairs:
    @pytest.mark.parametrize(
        ("images", "masks", "severity"), [(36, 35, "warning"), (36, 0, "note"), (0, 36, "note")]
    )
    def test_fires_where_no_single_turn_explains_both(self, images, masks, severity):
        finding = LabelsUnrelated().from_pairs(OrientedPairs(8, 48, 33, images, masks))
        assert (finding.severity, finding.evidence["apart"]) == (severity, 33)

    def test_is_silent_where_one_does(self):
        assert LabelsUnrelated().from_pairs(OrientedPairs(8, 48, 0, 36, 36)) is None

    def test_needs_readings_to_compare(self):
        with pytest.raises(NotApplicable):
            LabelsUnrelated().from_pairs(OrientedPairs(8, 4, 4, 4, 4))


class TestFlippedTargets:
    @pytest.mark.parametrize(
        ("kind", "fits"),
        [
            ("mask", (20, 25, 23, 19)),
            ("box", (40, 50, 0, 0)),
            ("mask", (70, 18, 0, 0)),
            ("box", (0, 0, 40, 50)),
            ("points", (30, 30, 0, 0)),
        ],
    )
    def test_fires_where_many_rows_fit_mirrored(self, kind, fits):
        finding = LabelsUnrelated().from_flips(OrientedPairs(96, kind=kind, fits=fits))
        assert (finding.severity, finding.evidence["fits"]) == ("warning", list(fits))

    @pytest.mark.parametrize("fits", [(90, 0, 0, 0), (0, 0, 90, 0), (80, 5, 5, 5), (50, 5, 0, 0)])
    def test_is_silent_where_almost_all_fit_in_one_way(self, fits):
        assert LabelsUnrelated().from_flips(OrientedPairs(96, fits=fits)) is None

    def test_rows_of_batches_were_not_read_again(self):
        with pytest.raises(NotApplicable):
            LabelsUnrelated().from_pairs(OrientedPairs(96, fits=(90, 0, 0, 0)))

    @pytest.mark.parametrize(("rows", "fits"), [(20, (10, 10, 0, 0)), (96, (10, 10, 10, 10)), (96, (0, 0, 0, 0))])
    def test_needs_rows_that_fit(self, rows, fits):
        with pytest.raises(NotApplicable):
            LabelsUnrelated().from_flips(OrientedPairs(rows, kind="box", fits=fits))
