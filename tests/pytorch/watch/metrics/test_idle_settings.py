import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from diagnostics.collectors.pytorch.watch.metrics.idle_settings import of_loader
from diagnostics.facts.written import SettingFacts
from tests.pytorch.watched import mlp, run


def found(watch):
    (facts,) = [fact for fact in watch.course() if isinstance(fact, SettingFacts)]
    return [(one.holder, one.kind, one.name, one.paths, one.instead) for one in facts.idle]


def freeze_module(step, model, optimizer):
    model[0].requires_grad = False


def freeze_with_a_typo(step, model, optimizer):
    for parameter in model[2].parameters():
        parameter.require_grad = False


def freeze_as_in_keras(step, model, optimizer):
    model.trainable = False


def lower_the_rate(step, model, optimizer):
    if step >= 3:
        optimizer.lr = 0.05 * 0.1 ** (step // 3)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (freeze_module, ("module", "Linear", "requires_grad", ("0",), "")),
        (freeze_with_a_typo, ("parameter", "Parameter", "require_grad", ("2.weight", "2.bias"), "")),
        (freeze_as_in_keras, ("module", "Sequential", "trainable", ("",), "")),
        (lower_the_rate, ("optimizer", "SGD", "lr", (), "0.05")),
    ],
)
def test_finds_what_nothing_reads(change, expected):
    assert found(run(mlp(), 12, every=2, change=change)) == [expected]


def freeze_as_well(step, model, optimizer):
    model[0].requires_grad = False
    model[0].requires_grad_(False)


def say_that_it_trains(step, model, optimizer):
    model[0].requires_grad = True


def note_the_rate_of_the_groups(step, model, optimizer):
    for group in optimizer.param_groups:
        group["lr"] = optimizer.lr = 0.05 * 0.9**step


def keep_the_first_rate_for_a_schedule(step, model, optimizer):
    optimizer.lr = 0.1
    optimizer.param_groups[0]["lr"] = optimizer.lr / (1 + step)


@pytest.mark.parametrize(
    "change", [freeze_as_well, say_that_it_trains, note_the_rate_of_the_groups, keep_the_first_rate_for_a_schedule]
)
def test_leaves_out_what_is_read_or_true(change):
    assert found(run(mlp(), 12, every=2, change=change)) == []


class ReadsItself(nn.Sequential):
    def forward(self, inputs):
        with torch.set_grad_enabled(getattr(self[0], "requires_grad", True)):
            hidden = self[0](inputs)
        return self[2](self[1](hidden))


def test_leaves_out_a_flag_that_the_model_reads():
    model = ReadsItself(*mlp())
    model[0].requires_grad = False
    assert found(run(model, 4, every=1)) == []


class Plants(Dataset):
    def __init__(self, transform=None):
        self.transform = transform

    def __len__(self):
        return 10

    def __getitem__(self, index):
        return torch.zeros(3) if self.transform is None else self.transform(torch.zeros(3))


class OwnSubset(Subset):
    def __getitem__(self, index):
        return self.transform(super().__getitem__(index))

    def __getitems__(self, indices):
        return [self[index] for index in indices]


def shift(row):
    return row + 1


def test_finds_a_transform_of_a_subset_and_the_shuffling_of_a_loader():
    subset = Subset(Plants(), [1, 2, 3])
    subset.transform = shift
    (idle,) = of_loader(DataLoader(subset)).idle
    assert (idle.holder, idle.kind, idle.name, idle.value, idle.instead) == (
        "subset",
        "Plants",
        "transform",
        "shift",
        "None",
    )
    loader = DataLoader(Plants())
    loader.shuffle = True
    assert [one.holder for one in of_loader(loader).idle] == ["loader"]


def test_leaves_out_a_transform_that_is_called():
    own, same = OwnSubset(Plants(), [1]), Subset(Plants(shift), [1])
    own.transform = same.transform = shift
    tensors = Subset(TensorDataset(torch.zeros(4, 2)), [0])
    tensors.transform = shift  # the loop may call it: nothing says that the data set should
    shuffled = DataLoader(Plants(), shuffle=True)
    shuffled.shuffle = True
    assert [of_loader(DataLoader(one)).idle for one in (own, same, tensors)] == [(), (), ()]
    assert of_loader(shuffled).idle == ()
    assert of_loader(np.zeros(3)) is None
