"""Padding in front of an evaluation's rows, which shifts their positions."""

import time

import pytest
import torch
from torch import nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.pytorch.dependence.kept_pass import KeptPass
from diagnostics.collectors.pytorch.dependence.positions import EvaluatedTexts, compare_positions
from diagnostics.collectors.shared.dependence.subject import Unclear

ROWS, WIDTH = 10, 12


class Reader(nn.Module):
    """Sums its tokens, weighted by their positions, which `kind` says how to count."""

    def __init__(self, kind="absolute"):
        super().__init__()
        torch.manual_seed(0)
        self.kind = kind
        self.tokens, self.places, self.head = nn.Embedding(30, 8), nn.Embedding(WIDTH, 8), nn.Linear(8, 6)

    def forward(self, ids, attention_mask, position_ids=None):
        if position_ids is None:
            position_ids = torch.arange(ids.shape[1]).expand_as(ids)
        if self.kind == "from the mask":
            position_ids = (attention_mask.cumsum(1) - 1).clamp(min=0)
        hidden = self.tokens(ids)
        if self.kind != "none":
            hidden = hidden * self.places(position_ids)
        if self.kind == "counts padding":
            padding = (1 - attention_mask).sum(1, keepdim=True)
            return self.head((self.tokens(ids) * attention_mask[..., None]).sum(1)) + padding * torch.arange(6)
        shown = attention_mask[..., None] if self.kind != "reads padding" else 1
        return self.head((hidden * shown).sum(1))


def texts(in_front=True):
    generator = torch.Generator().manual_seed(1)
    ids, mask = torch.zeros(ROWS, WIDTH, dtype=torch.long), torch.zeros(ROWS, WIDTH, dtype=torch.long)
    for row in range(ROWS):
        length = 3 + row
        place = slice(WIDTH - length, None) if in_front else slice(length)
        ids[row, place] = torch.randint(1, 30, (length,), generator=generator)
        mask[row, place] = 1
    return ids, mask


def kept(ids, mask):
    return KeptPass(((ids,), {"attention_mask": mask}), None, None, False, None, False)


def compared(model, trained_in_front=False):
    deadline = time.monotonic() + 60
    return compare_positions(model, kept(*texts()), kept(*texts(trained_in_front)), deadline)


def test_absolute_positions_change_predictions_until_they_are_counted():
    found = compared(Reader())
    assert found.changed >= 3
    assert (found.with_positions, found.reader) == (0, "Reader")
    assert found.longest == WIDTH - 3


@pytest.mark.parametrize("kind", ["none", "from the mask"])
def test_nothing_changes_where_no_position_is_shifted(kind):
    assert compared(Reader(kind)).changed == 0


def test_unclear_where_another_cause_is_possible():
    with pytest.raises(Unclear, match="reads the padding"):
        compared(Reader("reads padding"))
    with pytest.raises(Unclear, match="not its place"):
        compared(Reader("counts padding"))
    with pytest.raises(Unclear, match="as well"):
        compared(Reader(), trained_in_front=True)


def test_the_model_stays_as_it_is():
    model = Reader().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    compared(model)
    assert model.training
    assert not model._forward_pre_hooks
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


class TestEvaluatedTexts:
    def kept_of(self, *calls):
        model = Reader()
        listening = EvaluatedTexts(model, FaultGuard())
        try:
            for call in calls:
                call(model)
            return listening.kept()
        finally:
            listening.close()

    @staticmethod
    def evaluate(in_front, **options):
        ids, mask = texts(in_front)

        def call(model):
            with torch.no_grad():
                model(ids, attention_mask=mask, **options)

        return call

    def test_keeps_copies_of_what_is_padded_in_front(self):
        found = self.kept_of(self.evaluate(True), self.evaluate(False))
        assert len(found) == 1
        assert torch.equal(found[0].inputs[0][0], texts()[0])

    def test_keeps_the_largest_beside_the_latest(self):
        ids, mask = texts(False)
        model = Reader()
        listening = EvaluatedTexts(model, FaultGuard())
        assert listening.largest() is None
        with torch.no_grad():
            model(ids, mask)
            for row in range(6):
                model(ids[row : row + 1], mask[row : row + 1])
        listening.close()
        assert torch.equal(listening.largest().inputs[0][0], ids)

    def test_keeps_nothing_of_training_or_with_positions(self):
        ids, mask = texts()
        counted = (mask.cumsum(1) - 1).clamp(min=0)
        assert not self.kept_of(lambda model: model(ids, mask), self.evaluate(True, position_ids=counted))
