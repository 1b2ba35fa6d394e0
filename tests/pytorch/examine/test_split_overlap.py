"""Training and evaluation rows, compared by content."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import diagnostics
from diagnostics.collectors.shared.split_overlap import compared_rows, input_columns, row_digest

STATES = [(np.array(bits, dtype=np.float32), sum(bits) % 2) for bits in itertools.product((0, 1), repeat=9)]


def compare(training, evaluation):
    (facts,) = compared_rows(training, evaluation)
    return facts


class TestPossibleRows:
    def test_are_counted_for_inputs_of_few_values(self):
        facts = compare(STATES, STATES)
        assert (facts.shared, facts.distinct_training_rows, facts.possible_rows) == (512, 512, 512)

    def test_are_counted_for_columns_of_text_and_numbers(self):
        rows = [
            {"colour": colour, "size": size, "label": 0}
            for colour in ("red", "blue")
            for size in (1, 2, 3)
            for _ in range(4)
        ]
        facts = compare(rows, rows)
        assert (facts.distinct_training_rows, facts.possible_rows) == (6, 6)

    @pytest.mark.parametrize("width", [1, 2, 20])
    def test_are_not_known_for_numbers_that_never_repeat(self, width):
        rows = [(row, 0) for row in np.random.default_rng(0).normal(size=(400, width))]
        assert compare(rows, rows).possible_rows is None

    def test_are_not_known_for_rows_of_different_lengths(self):
        rows = [({"input_ids": [1] * (2 + i % 3)}) for i in range(90)]
        assert compare(rows, rows).possible_rows is None


class TestInAnExamination:
    def leak(self, training, evaluation):
        """Return the severity of leaked-evaluation-rows, in plain PyTorch; None without the finding."""

        def loader(rows):
            inputs, labels = zip(*rows, strict=True)
            dataset = TensorDataset(torch.from_numpy(np.stack(inputs)), torch.tensor(labels))
            return DataLoader(dataset, batch_size=32, shuffle=rows is training)

        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(9, 64), nn.ReLU(), nn.Linear(64, 2))
        report = diagnostics.examine(model, loader(training), nn.CrossEntropyLoss(), evaluation=loader(evaluation))
        return next((f.severity for f in report.findings if f.rule == "leaked-evaluation-rows"), None)

    def test_all_states_of_nine_bits_may_be_trained_on_and_evaluated(self):
        assert self.leak(STATES, list(STATES)) == "note"

    def test_states_drawn_again_and_again_may_be_evaluated_all(self):
        drawn = [STATES[i] for i in np.random.default_rng(0).integers(512, size=4096)]
        assert self.leak(drawn, STATES) == "note"

    def test_measurements_trained_on_may_not(self):
        generator = np.random.default_rng(0)
        rows = [(generator.normal(size=9).astype(np.float32), i % 2) for i in range(512)]
        assert self.leak(rows, list(rows)) == "warning"


def test_texts_of_token_ids_may_have_any_length():
    texts = [[1, 5, 6, 0], [1, 5], [1, 5, 7, 8, 9, 0], [1, 5, 6, 0]]
    digests = [row_digest(text, input_columns(texts[0])) for text in texts]
    assert len(set(digests)) == 3
    assert digests[0] == digests[3]
