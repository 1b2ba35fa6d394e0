"""The targets of rows that come again in a loop, where these rows are all that the model gets."""

import torch
from torch import nn

import diagnostics
from diagnostics.facts.course import RowLedger

ROWS, EPOCHS = 256, 40
INPUTS = torch.randn(ROWS, 5, generator=torch.Generator().manual_seed(0))
CLASSES = torch.randint(3, (ROWS,), generator=torch.Generator().manual_seed(1))
OTHERS = torch.randint(4, (ROWS,), generator=torch.Generator().manual_seed(2))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.last = nn.Linear(5, 8), nn.Linear(8, 3)

    def forward(self, inputs, other=None):
        return self.last(torch.tanh(self.hidden(inputs)))


def watched(rows_of, *others):
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with diagnostics.watch(model, optimizer) as watch:
        for _ in range(EPOCHS):
            order = torch.randperm(ROWS)
            for start in range(0, ROWS, 32):
                rows = order[start : start + 32]
                given = [other[rows] if isinstance(other, torch.Tensor) else other for other in others]
                labels = CLASSES[rows_of(rows, start)]
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(INPUTS[rows], *given), labels)
                loss.backward()
                optimizer.step()
                watch.step(loss)
    report = watch._report()
    return next((fact for fact in report.facts if isinstance(fact, RowLedger) and fact.rows), None), report


def in_the_old_order(rows, start):
    return slice(start, start + 32)


def test_labels_in_another_order_than_their_rows_are_named():
    seen, report = watched(in_the_old_order)
    assert seen.of_others > 0.9 * seen.changed
    assert abs(seen.changed / seen.compared - seen.chance) < 0.15
    assert "labels-unrelated" in {finding.rule for finding in report.findings}


def test_labels_that_follow_their_rows_do_not_change():
    seen, report = watched(lambda rows, start: rows)
    assert seen.compared > 50
    assert seen.changed == 0
    assert "labels-unrelated" not in {finding.rule for finding in report.findings}


def test_rows_with_something_else_beside_them_are_not_compared():
    assert watched(in_the_old_order, OTHERS)[0] is None  # the same picture, another question
    assert watched(in_the_old_order, "first task")[0] is None
    assert watched(in_the_old_order, torch.randn(ROWS, 2))[0] is not None
