"""What PyTorch refuses beside models and batches, raised for real: exception and text give one rule."""

import pickle
import traceback

import numpy as np
import pytest
import torch
from torch import distributed as dist
from torch import nn
from torch.nn import functional
from torch.utils import data

from diagnostics.api.explain import explain

WIDE, TALL = torch.zeros(4, 8), torch.zeros(3, 3)
ROW = torch.zeros(1).long()


class Unfinished(data.Dataset):
    def __len__(self):
        return 4


class Stream(data.IterableDataset):
    def __iter__(self):
        return iter([1])


def optimizer():
    return torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)


def restarted():
    torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer(), 5).step(-1)


def doubled_norm():
    return nn.utils.weight_norm(nn.utils.weight_norm(nn.Linear(2, 2)))


def pickled():
    pickle.dumps(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)))


def gradient(of):
    layer = nn.Linear(2, 2)
    layer.weight.grad = of


REFUSED = {
    "no getitem": (lambda: next(iter(data.DataLoader(Unfinished()))), "mismatched-call"),
    "unequal rows": (lambda: data.TensorDataset(torch.zeros(4), torch.zeros(5)), "shape-mismatch"),
    "nothing to join": (lambda: data.ConcatDataset([]), "emptied-dataset"),
    "a stream among them": (lambda: data.ConcatDataset([Stream()]), "mismatched-call"),
    "weights in a column": (lambda: data.WeightedRandomSampler(torch.ones(4, 1), 4), "shape-mismatch"),
    "a number as replacement": (lambda: data.RandomSampler([1, 2], 100), "unusable-setting"),
    "fewer than no workers": (lambda: data.DataLoader([1], num_workers=-1), "unusable-setting"),
    "no batches to drop": (lambda: data.DataLoader([1], batch_size=None, drop_last=True), "unusable-setting"),
    "sparse examples": (
        lambda: next(iter(data.DataLoader([torch.eye(2).to_sparse()] * 2, batch_size=2))),
        "unbatchable-example",
    ),
    "an epoch below 0": (restarted, "unusable-setting"),
    "mode of Keras": (
        lambda: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer(), mode="auto"),
        "unusable-setting",
    ),
    "a scaler without state": (
        lambda: torch.amp.GradScaler("cpu").load_state_dict({}),
        "mixed-precision-misuse",
    ),
    "a number to scale": (lambda: torch.amp.GradScaler("cpu").scale(1.5), "mixed-precision-misuse"),
    "a device object": (lambda: torch.autocast(torch.device("cpu")), "unusable-setting"),
    "a tensor to autocast": (lambda: torch.autocast("cpu")(WIDE), "mismatched-call"),
    "a bias for Muon": (lambda: torch.optim.Muon(nn.Linear(2, 2).parameters()), "unusable-setting"),
    "saved in the wrong order": (lambda: torch.save("x.pt", nn.Linear(2, 2)), "mismatched-call"),
    "saved into no folder": (lambda: torch.save({}, "no/such/folder/x.pt"), "unusable-setting"),
    "pickled parametrization": (pickled, "refused-call"),
    "two norms": (doubled_norm, "refused-call"),
    "no norm": (lambda: nn.utils.remove_weight_norm(nn.Linear(2, 2)), "refused-call"),
    "an impossible size": (
        lambda: nn.ConvTranspose2d(3, 3, 3, stride=2)(torch.zeros(1, 3, 16, 16), output_size=(40, 40)),
        "shape-mismatch",
    ),
    "unequal axes of a ranking": (
        lambda: functional.margin_ranking_loss(WIDE, WIDE, torch.zeros(4)),
        "shape-mismatch",
    ),
    "unequal axes of a triplet": (
        lambda: functional.triplet_margin_loss(WIDE[..., None], WIDE, WIDE),
        "shape-mismatch",
    ),
    "a negative variance": (
        lambda: functional.gaussian_nll_loss(torch.zeros(2), torch.zeros(2), -torch.ones(2)),
        "refused-call",
    ),
    "scattered dtypes": (lambda: TALL.clone().scatter_(1, ROW[None], TALL.double()), "dtype-mismatch"),
    "added dtypes": (lambda: TALL.clone().index_add_(0, ROW, TALL[:1].half()), "dtype-mismatch"),
    "copied dtypes": (lambda: TALL.clone().index_copy_(0, ROW, TALL[:1].half()), "dtype-mismatch"),
    "a mask of numbers": (lambda: WIDE.masked_fill(WIDE, 0), "dtype-mismatch"),
    "a condition of numbers": (lambda: torch.where(WIDE, 1, 0), "dtype-mismatch"),
    "half an inverse": (lambda: torch.linalg.inv(torch.eye(2).half()), "dtype-mismatch"),
    "a negative power": (lambda: torch.tensor([2]) ** -1, "dtype-mismatch"),
    "a gradient of another shape": (lambda: gradient(torch.ones(3)), "shape-mismatch"),
    "a gradient of another dtype": (lambda: gradient(torch.ones(2, 2).double()), "dtype-mismatch"),
    "a range that runs back": (lambda: torch.arange(0, -10), "refused-call"),
    "a seed beyond 64 bits": (lambda: torch.manual_seed(1.5e20), "refused-call"),
    "windows larger than the input": (lambda: torch.zeros(4).unfold(0, 8, 1), "shape-mismatch"),
    "blocks that do not fit": (lambda: functional.fold(torch.zeros(1, 12, 10), (4, 4), 2), "shape-mismatch"),
    "a value inside of vmap": (lambda: torch.vmap(lambda x: x.item())(torch.ones(3)), "refused-call"),
    "a branch inside of vmap": (lambda: torch.vmap(lambda x: 1 if x > 0 else 0)(torch.ones(3)), "refused-call"),
    "noise inside of vmap": (lambda: torch.vmap(lambda x: x + torch.randn(1))(torch.ones(3)), "refused-call"),
    "a layer of floats": (lambda: nn.Linear(3.5, 2), "refused-call"),
    "a negative size": (lambda: torch.zeros(-1, 2), "shape-mismatch"),
    "a count of NumPy's floats": (lambda: np.linspace(0, 1, np.float64(3)), "installation-mismatch"),
    "a function among layers": (lambda: nn.ModuleList([lambda x: x]), "refused-call"),
}


def check(call, rule):
    with pytest.raises(Exception) as raised:  # noqa: PT011 - PyTorch chooses
        call()
    text = "".join(traceback.format_exception(raised.value))
    said = f"{type(raised.value).__name__}: {raised.value}"
    given = [[finding.rule for finding in explain(asked).findings] for asked in (raised.value, text, said)]
    assert given == [[rule]] * 3


@pytest.mark.filterwarnings("ignore::FutureWarning")  # the older weight_norm
@pytest.mark.parametrize("name", REFUSED)
def test_exception_traceback_and_message_give_the_same_rule(name):
    check(*REFUSED[name])


@pytest.fixture
def group():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda: dist.all_reduce(1.5), "mismatched-call"),
        (lambda: dist.all_gather(torch.ones(1), torch.ones(1)), "mismatched-call"),
        (lambda: dist.gather(torch.ones(1)), "mismatched-call"),
        (lambda: dist.new_group([0], timeout=60), "mismatched-call"),
        (lambda: dist.new_group([0, 1]), "unusable-setting"),
    ],
)
def test_what_a_group_of_ranks_refuses(group, call, rule):
    check(call, rule)
