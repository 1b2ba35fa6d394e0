"""Unit tests of `compare_packed`, on a model of arrays."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from diagnostics.collectors.shared.dependence.packing import compare_packed
from diagnostics.collectors.shared.dependence.subject import Answer, Subject, Unclear

START, WORDS = 1, 12
LENGTHS = [[5, 7, 6], [8, 4, 6], [6, 6, 6], [7, 5, 6], [5, 5, 8]]


class Counting(Subject):
    """Predicts how often each token was read before, in the row or in its own document."""

    batch_first = True
    predicts_tokens = True

    def __init__(self, inputs, target, *, sees, ignore_index=-100, fixed=None):
        self.inputs, self.target, self.ignore_index = inputs, target, ignore_index
        self.tested = frozenset(inputs) - {"labels"}
        self.sees, self.fixed = sees, fixed
        self.random = 0.0

    def ask(self, inputs, *, training=False, seed=0):
        tokens = next(array for name, array in inputs.items() if name != "positions")
        rows, length = tokens.shape
        if self.fixed and length != self.fixed:
            raise ValueError("wrong length")
        visible = np.tril(np.ones((rows, length, length), bool)) & self.sees(inputs, rows, length)
        counts = visible.astype(np.float32) @ np.eye(WORDS, dtype=np.float32)[tokens]
        return Answer(counts + self.random * seed)

    def operations_seen(self, size):
        return contextlib.nullcontext([])

    summaries_seen = reads_steps = restored = add_noise = layers = scaled = own_statistics = None


def everything(inputs, rows, length):
    return True


def own_document(inputs, rows, length):
    segments = (inputs["positions"] == 0).cumsum(1)
    return segments[:, :, None] == segments[:, None, :]


def packed(lengths=LENGTHS, seed=0):
    """Return tokens, positions and document numbers; each document begins with START."""
    rng = np.random.default_rng(seed)
    shape = (len(lengths), sum(lengths[0]))
    tokens = rng.integers(2, WORDS, shape)
    positions = np.array([np.concatenate([np.arange(n) for n in row]) for row in lengths])
    tokens[positions == 0] = START
    return tokens, positions, (positions == 0).cumsum(1)


def next_tokens(tokens):
    return tokens[:, 1:].copy()


def own_labels(tokens, positions, prompt):
    """Return labels in the layout of transformers, ignored in the first tokens of each document."""
    return np.where(positions < prompt, -100, tokens)


def test_measures_what_the_first_document_does_to_the_second():
    tokens, positions, _ = packed()
    facts = compare_packed(Counting({"ids": tokens, "positions": positions}, next_tokens(tokens), sees=everything))
    assert (facts.mark, facts.marker, facts.input) == ("positions", "positions", "ids")
    assert (facts.rows, facts.documents, facts.closed, facts.separated) == (4, 12, True, False)
    assert facts.change > 0.5
    assert facts.loss_moves > 0.05
    assert facts.loss_alone != facts.loss


def test_finds_no_change_when_each_document_sees_itself():
    tokens, positions, _ = packed()
    facts = compare_packed(
        Counting({"ids": tokens, "positions": positions}, next_tokens(tokens), sees=own_document)
    )
    assert facts.change == 0.0
    assert facts.loss == facts.loss_exchanged == pytest.approx(facts.loss_alone)


def test_compares_labels_of_transformers_in_one_long_row():
    tokens, positions, _ = packed([[5, 7, 6, 8, 4]])
    labels = own_labels(tokens, positions, 1)
    subject = Counting({"ids": tokens, "positions": positions, "labels": labels}, labels, sees=everything)
    facts = compare_packed(subject)
    assert (facts.rows, facts.documents, facts.separated) == (1, 5, True)
    assert facts.change > 0.5


def test_reads_documents_from_their_numbers():
    tokens, positions, segments = packed()
    labels = own_labels(tokens, positions, 1)
    facts = compare_packed(Counting({"ids": tokens, "documents": segments}, labels, sees=everything))
    assert (facts.mark, facts.marker, facts.separated) == ("segments", "documents", True)


def test_reads_documents_from_ignored_prompts():
    tokens, positions, _ = packed()
    facts = compare_packed(Counting({"ids": tokens}, own_labels(tokens, positions, 2), sees=everything))
    assert (facts.mark, facts.marker) == ("labels", "")


def test_knows_no_loss_alone_of_a_model_with_one_length():
    tokens, positions, _ = packed()
    subject = Counting(
        {"ids": tokens, "positions": positions}, next_tokens(tokens), sees=everything, fixed=tokens.shape[1]
    )
    assert compare_packed(subject).loss_alone is None


def test_keeps_the_first_and_last_token_of_a_document():
    tokens, positions, _ = packed()
    asked = []

    def sees(inputs, rows, length):
        asked.append(inputs["ids"])
        return True

    compare_packed(Counting({"ids": tokens, "positions": positions}, next_tokens(tokens), sees=sees))
    before, _, exchanged = asked[:3]
    for row, lengths in enumerate(LENGTHS[:4]):
        changed = np.flatnonzero(before[row] != exchanged[row])
        assert changed.size
        assert changed.min() > 0
        assert changed.max() < lengths[0] - 1


@pytest.mark.parametrize(
    "change",
    [
        lambda positions: np.arange(positions.shape[1])[None].repeat(len(positions), 0),  # one document
        lambda positions: positions * 2,  # a grid, or time
        lambda positions: np.minimum(np.arange(positions.shape[1]), 4)[None].repeat(len(positions), 0),
    ],
)
def test_unclear_when_positions_do_not_restart(change):
    tokens, positions, _ = packed()
    subject = Counting({"ids": tokens, "positions": change(positions)}, next_tokens(tokens), sees=everything)
    with pytest.raises(Unclear, match="several documents"):
        compare_packed(subject)


def test_unclear_when_all_parts_have_one_length():
    tokens, positions, _ = packed([[6, 6, 6]] * 4)  # the rows of a grid
    with pytest.raises(Unclear, match="several documents"):
        compare_packed(Counting({"ids": tokens, "positions": positions}, next_tokens(tokens), sees=everything))


def test_unclear_when_the_rest_of_a_row_is_padding():
    tokens, positions, _ = packed([[12, 6], [9, 9], [7, 11]])
    tokens[np.arange(18) >= np.array([[12], [9], [7]])] = 0
    with pytest.raises(Unclear, match="several documents"):
        compare_packed(Counting({"ids": tokens, "positions": positions}, next_tokens(tokens), sees=everything))


def test_unclear_when_documents_are_joined_by_a_token_alone():
    tokens, _, _ = packed()
    with pytest.raises(Unclear, match="several documents"):
        compare_packed(Counting({"ids": tokens}, next_tokens(tokens), sees=everything))


def test_unclear_when_only_some_turns_are_trained():
    tokens, _, segments = packed()
    labels = np.where(segments % 2 == 1, -100, tokens)  # what the user says
    with pytest.raises(Unclear, match="several documents"):
        compare_packed(Counting({"ids": tokens, "turns": segments}, labels, sees=everything))


def test_unclear_when_targets_are_no_tokens():
    tokens, positions, _ = packed()
    classes = np.arange(len(tokens)) % 2  # of a pair of sentences
    with pytest.raises(Unclear, match="targets"):
        compare_packed(Counting({"ids": tokens, "positions": positions}, classes, sees=everything))


def test_unclear_when_predictions_are_random():
    tokens, positions, _ = packed()
    subject = Counting({"ids": tokens, "positions": positions}, next_tokens(tokens), sees=everything)
    subject.random = np.linspace(0, 1, WORDS, dtype=np.float32)
    with pytest.raises(Unclear, match="random"):
        compare_packed(subject)
