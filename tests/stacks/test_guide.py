"""The guide's examples for the stacks, run as they stand on its page: the book's environment has none of them."""

import re
import textwrap

import accelerate
import fastai.callback.schedule  # noqa: F401  it adds fit_one_cycle
import lightning
import numpy as np
import skorch
import torch
from fastai.basics import DataLoaders, Learner
from torch import nn
from torch.utils.data import TensorDataset

import diagnostics
from tests.stacks.lightning_programs import autoencoder
from tests.stacks.test_stacks import ROOT

PAGE = ROOT / "book" / "guide" / "your-project.md"
TAB = r"^:::\{{tab-item\}} {}\n(.*?)^:::$"
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(stack, **names):
    """Run the examples in all tabs of a stack, one after the other; return their number."""
    tabs = re.findall(TAB.format(stack), PAGE.read_text(), re.MULTILINE | re.DOTALL)
    examples = [code for tab in tabs for code in CODE.findall(tab)]
    names["diagnostics"] = diagnostics
    for example in examples:
        exec(compile(textwrap.dedent(example), str(PAGE), "exec"), names)
    return len(examples)


def test_those_of_lightning(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    program = autoencoder()
    assert run("Lightning", module=program.module, loader=program.data, lightning=lightning) == 2
    shown = capsys.readouterr().out
    assert "examined Autoencoder with a DataLoader" in shown
    assert "watched 60 steps of Autoencoder with a Lightning Trainer" in shown


def test_those_of_accelerate(capsys):
    program = autoencoder()
    model = nn.Linear(16, 1)
    batches = [(x, x.sum(1, keepdim=True)) for (x,) in program.data]
    names = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.01), "loss_fn": nn.MSELoss()}
    loader = torch.utils.data.DataLoader(batches, batch_size=None)
    assert run("accelerate", accelerator=accelerate.Accelerator(cpu=True), loader=loader, **names) == 1
    assert "watched 12 steps of Linear" in capsys.readouterr().out


def test_those_of_skorch(capsys):
    torch.manual_seed(0)
    X = np.random.default_rng(0).normal(size=(256, 8)).astype(np.float32)
    names = {"NeuralNetClassifier": skorch.NeuralNetClassifier, "X": X, "y": (X[:, 0] > 0).astype(np.int64)}
    module = nn.Sequential(nn.Linear(8, 2), nn.Softmax(-1))
    assert run("skorch", module=module, **names) == 1
    assert "in a NeuralNetClassifier" in capsys.readouterr().out


def test_those_of_fastai(capsys):
    x = torch.randn(64, 8)
    rows = TensorDataset(x, (x[:, 0] > 0).long())
    names = {
        "dls": DataLoaders.from_dsets(rows, rows, bs=16),
        "Learner": Learner,
        "loss_func": nn.CrossEntropyLoss(),
    }
    assert run("fastai", model=nn.Linear(8, 2), **names) == 2
    shown = capsys.readouterr().out
    assert "examined Linear with a Learner" in shown
    assert "watched 20 steps of Linear with a Learner" in shown
