import pytest
import torch
from torch import nn

from diagnostics.facts.inputs import InputFacts
from tests.pytorch.watched import batch, run


def facts(watch):
    return next((fact for fact in watch.course() if isinstance(fact, InputFacts)), None)


def evaluate(scale, rows=48):
    def change(step, model, _optimizer):
        if step % 5 == 0:
            with torch.no_grad():
                model(scale * batch(100 + step, rows)[0])

    return change


def network():
    return nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 3))


def test_keeps_parts_of_training_and_evaluation():
    seen = facts(run(network(), 20, change=evaluate(10.0)))
    training, evaluation = seen.training["0"], seen.evaluation["0"]
    assert (training.size, training.positional, training.integers) == (8, False, False)
    assert {part.shape for part in training.batches} == {(16, 8, 1)}
    assert {part.shape for part in evaluation.batches} == {(24, 8, 1)}  # every second of 48 rows
    assert evaluation.numbers().std() > 5 * training.numbers().std()
    assert seen.rounds == len(evaluation.batches) == 3  # not that before the first step


def test_keeps_more_rows_to_tell_them_apart():
    model = nn.Sequential(nn.Linear(90, 4), nn.Linear(4, 3))

    def table(step):
        return torch.rand(700, 90) + step, torch.randint(3, (700,))

    def change(step, model, _optimizer):
        with torch.no_grad():
            model(table(step)[0][:300])

    seen = facts(run(model, 10, change=change, data=table))
    assert {part.shape for part in seen.training["0"].traits} == {(234, 30)}  # every third row and number
    assert {part.shape for part in seen.evaluation["0"].traits} == {(150, 30)}
    assert len(seen.evaluation["0"].traits) == len(seen.evaluation["0"].batches)
    assert seen.outputs == 3


def test_keeps_a_bounded_number():
    def change(step, model, _optimizer):
        with torch.no_grad():
            for number in range(100):
                model(batch(number, 4)[0])

    seen = facts(run(network(), 60, change=change, every=1))
    assert len(seen.evaluation["0"].batches) == 64
    assert len(seen.training["0"].batches) == 16


@pytest.mark.parametrize("evaluations", [1, 20])
def test_keeps_rows_that_are_evaluated_after_many_others(evaluations):
    def change(step, model, _optimizer):
        if step % 10 == 0:
            with torch.no_grad():
                for rows, scale in (*[(8, 1.0)] * 50, (5, 1.0), *[(8, 9.0)] * 3):
                    model(scale * batch(step, rows)[0])

    seen = facts(run(network(), 10 * evaluations + 1, change=change)).evaluation["0"]
    assert sum(part.std() > 3 for part in seen.batches[-8:]) == 3
    assert len(seen.batches) <= 64


def test_arranges_images_by_channel():
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 40 * 40, 3))

    def images(step):
        generator = torch.Generator().manual_seed(step)
        return torch.rand(8, 3, 40, 40, generator=generator), torch.randint(3, (8,), generator=generator)

    def change(step, model, _optimizer):
        with torch.no_grad():
            model(images(step)[0])

    seen = facts(run(model, 10, change=change, data=images)).training["0"]
    assert (seen.size, seen.positional) == (4800, True)
    assert {part.shape for part in seen.batches} == {(8, 3, 64)}
    assert {part.shape for part in seen.traits} == {(8, 3 * 25)}


def test_takes_neither_ids_nor_masks():
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.out = nn.Embedding(9, 4), nn.Linear(4, 3)

        def forward(self, ids, mask):
            return self.out((self.embedding(ids) * mask.unsqueeze(2)).mean(1))

    class Named(Words):
        def forward(self, inputs):
            return super().forward(inputs["ids"], inputs["mask"])

    def words(step):
        return {"ids": torch.randint(9, (8, 5)), "mask": torch.ones(8, 5)}, torch.randint(3, (8,))

    def change(step, model, _optimizer):
        with torch.no_grad():
            model(words(step)[0])

    assert facts(run(Named(), 10, change=change, data=words)) is None


def test_nothing_without_an_evaluation():
    assert facts(run(network(), 5)) is None
