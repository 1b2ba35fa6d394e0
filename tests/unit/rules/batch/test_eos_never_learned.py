import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.inputs import EndToken
from diagnostics.facts.pipeline import BatchFacts
from diagnostics.rules.batch.eos_never_learned import EosNeverLearned

RULE = EosNeverLearned()
END = EndToken((1,))
LENGTHS = np.array([9, 7, 6, 8])
MASK = (np.arange(9) < LENGTHS[:, None]).astype(int)
IDS = np.where(MASK, np.arange(10, 46).reshape(4, 9), 1)
IDS[np.arange(4), LENGTHS - 1] = 1  # the end, which is the pad token as well
LABELS = np.where(IDS == 1, -100, IDS)
BLOCKS = IDS[:, :5]


def batch(labels=LABELS, mask=MASK, ids=IDS):
    return BatchFacts(len(ids), {"input_ids": ids, "attention_mask": mask}, labels, "labels")


def test_fires_where_the_end_is_ignored_as_if_it_were_padding():
    finding = RULE.from_batch(batch(), END)
    assert (finding.rule, finding.severity, finding.stage) == ("eos-never-learned", "warning", "batch")
    assert finding.evidence == {"texts": 4, "ended": 4, "token": 1}


def test_fires_on_padding_at_the_left():
    assert (
        RULE.from_batch(batch(LABELS[:, ::-1], MASK[:, ::-1], IDS[:, ::-1].copy()), EndToken((10, 19, 28, 37)))
        is None
    )
    left = np.stack([np.roll(row, 9 - n) for row, n in zip(IDS, LENGTHS, strict=True)])
    mask = np.stack([np.roll(row, 9 - n) for row, n in zip(MASK, LENGTHS, strict=True)])
    assert RULE.from_batch(batch(np.where(left == 1, -100, left), mask, left), END).evidence["ended"] == 4


NEXT = LABELS[:, 1:]  # as a loss of the script's own gets them


@pytest.mark.parametrize(
    "labels", [NEXT, NEXT.ravel(), np.hstack([NEXT, np.full((4, 1), -100)])], ids=["rows", "flat", "as long"]
)
def test_fires_on_next_tokens(labels):
    assert RULE.from_batch(batch(labels), END).evidence["ended"] == 4
    labels = labels.copy()
    labels.flat[-1] = 1
    assert RULE.from_batch(batch(labels), END) is None


@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [2]])
def test_silent_where_an_end_counts(rows):
    labels = LABELS.copy()
    labels[rows, LENGTHS[rows] - 1] = 1
    assert RULE.from_batch(batch(labels), END) is None


@pytest.mark.parametrize(
    "given",
    [
        batch(np.arange(4)),
        batch(mask=None),
        batch(np.where(LABELS > 0, 3, -100)),
        batch(np.full_like(LABELS, -100)),
        batch(np.where(np.arange(9) > 4, LABELS, -100)),
        batch(BLOCKS, np.ones((4, 5), int), BLOCKS),
    ],
)
def test_not_applicable_where_no_end_is_to_be_learned(given):
    with pytest.raises(NotApplicable):
        RULE.from_batch(given, END)


UNENDED = np.where(MASK, IDS, 0) + 1  # no token is the end, and the pad token is none either
UNENDED_LABELS = np.where(MASK, UNENDED, -100)
END_OF_UNENDED = EndToken((99,))


class TestTextsWithoutAnEnd:
    def test_is_a_note_where_all_of_a_text_is_learned(self):
        finding = RULE.from_batch(batch(UNENDED_LABELS, ids=UNENDED), END_OF_UNENDED)
        assert (finding.rule, finding.severity) == ("eos-never-learned", "note")

    def test_is_a_warning_where_answers_follow_prompts(self):
        labels = np.where(np.arange(9) < 2, -100, UNENDED_LABELS)
        finding = RULE.from_batch(batch(labels, ids=UNENDED), END_OF_UNENDED)
        assert (finding.severity, finding.evidence["prompts"]) == ("warning", 3)

    def test_names_a_mask_that_hides_the_end_with_the_padding(self):
        mask = np.where(IDS == 1, 0, 1)
        finding = RULE.from_batch(batch(mask=mask), END)
        assert finding.evidence["hidden"]

    def test_silent_where_one_end_counts(self):
        ids, labels, mask = UNENDED.copy(), UNENDED_LABELS.copy(), MASK.copy()
        ids[2, 5] = labels[2, 5] = 99
        assert RULE.from_batch(batch(labels, mask, ids), END_OF_UNENDED) is None

    def test_not_applicable_to_one_short_text(self):
        with pytest.raises(NotApplicable):
            RULE.from_batch(batch(UNENDED_LABELS[:2], MASK[:2], UNENDED[:2]), END_OF_UNENDED)


TARGETS = np.where(np.arange(6) < np.array([6, 4, 3, 5])[:, None], np.arange(20, 44).reshape(4, 6), -100)
DECODER = EndToken((1,), of_targets=True)
CUT = np.full_like(TARGETS, -100)
CUT[:, :3] = TARGETS[:, :3]


class TestTargetsOfADecoder:
    @pytest.mark.parametrize("labels", [TARGETS, TARGETS.ravel()], ids=["rows", "flat"])
    def test_fires_where_no_target_has_an_end(self, labels):
        finding = RULE.from_batch(batch(labels), DECODER)
        assert (finding.rule, finding.severity, finding.stage) == ("eos-never-learned", "warning", "batch")
        assert finding.evidence == {"texts": 4, "shorter": 3, "longest": 6, "token": 1}

    @pytest.mark.parametrize("rows", [[0, 1, 2, 3], [2]])
    def test_silent_where_an_end_counts(self, rows):
        labels = TARGETS.copy()
        labels[rows, [[5, 3, 2, 4][row] for row in rows]] = 1
        assert RULE.from_batch(batch(labels), DECODER) is None

    @pytest.mark.parametrize(
        "labels",
        [
            np.where(np.roll(TARGETS, -1, axis=1) == -100, np.where(TARGETS > 0, 9, -100), TARGETS),
            CUT,
            TARGETS[:, :3],
            np.full_like(TARGETS, -100),
            np.arange(4),
            None,
        ],
        ids=["stop sign", "equal lengths", "short", "ignored", "classes", "none"],
    )
    def test_not_applicable_where_targets_may_need_no_end(self, labels):
        with pytest.raises(NotApplicable):
            RULE.from_batch(batch(labels), DECODER)


LENGTH = 7
ENDS = np.array([6, 4, 3, 5])[:, None]
TEXTS = np.where(np.arange(LENGTH) < ENDS, np.arange(20, 48).reshape(4, LENGTH), 3)  # padded with 3
TEXTS[np.arange(4), ENDS[:, 0]] = 0  # the end


def next_tokens(texts=TEXTS, ignore_index=0, labels=None, tokens=None):
    labels = texts[:, 1:] if labels is None else labels
    given = {"source": np.ones((4, 9), int), "target": texts[:, :-1] if tokens is None else tokens}
    return BatchFacts(4, given, labels, ignore_index=ignore_index)


class TestNextTokens:
    @pytest.mark.parametrize(
        "given",
        [
            next_tokens(),
            next_tokens(labels=TEXTS[:, 1:].ravel()),
            next_tokens(tokens=TEXTS),
            next_tokens(tokens=TEXTS[:, :-1].T, labels=TEXTS[:, 1:].T.ravel()),
        ],
        ids=["rows", "flat", "all tokens", "steps first"],
    )
    def test_fires_where_the_end_is_ignored_and_its_padding_counts(self, given):
        finding = RULE.from_next_tokens(given)
        assert (finding.rule, finding.severity) == ("eos-never-learned", "warning")
        assert finding.evidence == {"texts": 4, "ended": 4, "token": 0, "padding": 3}

    def test_names_the_end_that_was_replaced_in_the_labels(self):
        labels = np.where(TEXTS == 0, -100, TEXTS)[:, 1:]
        finding = RULE.from_next_tokens(next_tokens(labels=labels, ignore_index=-100))
        assert (finding.evidence["token"], finding.evidence["padding"]) == (0, 3)

    @pytest.mark.parametrize(
        "given",
        [
            next_tokens(ignore_index=3),
            next_tokens(ignore_index=-100),
            next_tokens(ignore_index=20),
            next_tokens(np.where(TEXTS == 3, 0, TEXTS)),
            next_tokens(np.where(TEXTS == 3, np.arange(LENGTH) + 50, TEXTS)),
            next_tokens(np.where(TEXTS == 22, 3, TEXTS)),
            next_tokens(np.where(np.arange(LENGTH) == 4, 0, np.where(np.arange(LENGTH) > 4, 3, TEXTS + 10))),
            next_tokens(TEXTS[:, ::-1]),
            next_tokens(tokens=TEXTS[:, 1:]),
            next_tokens(labels=np.arange(4)),
            BatchFacts(4, {"source": TEXTS}),
        ],
        ids=[
            "padding ignored",
            "nothing ignored",
            "a word ignored",
            "padding is the end",
            "answers behind a separator",
            "padding is a word",
            "one length",
            "padding first",
            "no next tokens",
            "classes",
            "no labels",
        ],
    )
    def test_not_applicable_where_the_ignored_label_may_be_no_end(self, given):
        with pytest.raises(NotApplicable):
            RULE.from_next_tokens(given)
