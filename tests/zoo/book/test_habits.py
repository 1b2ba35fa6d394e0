"""The page of habits: complete, tested, and its examples run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import diagnostics
from book.generated.teaching import points
from tests.support.notebooks import numbered, write

ROOT = Path(__file__).resolve().parents[3]
LISTED = [p for p in points(ROOT / "book" / "teaching_points.toml") if p.area == "The practitioner's list"]
SECTION = re.compile(
    r"^\((?P<point>\S+)\)=\n## (?P<title>[^\n]+)\n\n```python\n(?P<example>.*?)^```\n\n"
    r"Tested in `(?P<test>\S+)`\.$",
    re.MULTILINE | re.DOTALL,
)


class Habit(NamedTuple):
    point: str
    title: str
    example: str
    test: str


HABITS = [Habit(*found) for found in SECTION.findall((ROOT / "book" / "habits.md").read_text("utf-8"))]
each = pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.point)


def test_every_habit_of_the_list_has_a_section() -> None:
    assert [(habit.point, habit.title) for habit in HABITS] == [(point.name, point.point) for point in LISTED]


@each
def test_a_section_calls_what_there_is_and_names_its_test(habit: Habit) -> None:
    calls = re.findall(r"diagnostics\.(\w+)", habit.example)
    calls += [name for name in ("loader_checks", "gradient_checks") if name in habit.example]
    fixtures = {"loader_checks": "LoaderChecks", "gradient_checks": "GradientChecks"}
    assert calls
    assert all(hasattr(diagnostics, fixtures.get(name, name)) for name in calls)
    tested = (ROOT / habit.test).read_text("utf-8")
    assert "def test_" in tested
    if not habit.test.startswith("tests/unit/report/"):
        assert any(name in tested or fixtures.get(name, name) in tested for name in calls)


def a_loop(folder: Path) -> dict[str, Any]:
    """Return what the examples take as given: a small loop of PyTorch, and what stands around it."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    x = torch.randn(320, 8)
    y = (x[:, 0] * x[:, 1] > 0).long()
    train_set, test_set = TensorDataset(x[:256], y[:256]), TensorDataset(x[256:], y[256:])
    model, loss_fn = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 2)), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def train(watch: diagnostics.Watch) -> None:
        for inputs, targets in DataLoader(train_set, 32, shuffle=True):
            optimizer.zero_grad()
            loss = loss_fn(model(inputs), targets)
            loss.backward()
            optimizer.step()
            watch.step(loss)

    class Recurrent(nn.GRU):
        def forward(self, x: Any) -> Any:
            return super().forward(x)[0]

    write(folder / "train.ipynb", *numbered("rate = 0.1", "print(rate)"))
    return {
        "torch": torch,
        "diagnostics": diagnostics,
        "model": model,
        "loss_fn": loss_fn,
        "optimizer": optimizer,
        "train_set": train_set,
        "train_loader": DataLoader(train_set, 32, shuffle=True),
        "test_loader": DataLoader(test_set, 32),
        "batch": (x[:16], y[:16]),
        "inputs": x[:8],
        "targets": y[:8],
        "names": ["same", "other"],
        "recurrent_model": Recurrent(16, 16, batch_first=True),
        "images": [np.random.default_rng(0).integers(0, 256, (4, 6, 3), dtype=np.uint8)],
        "to_tensor": lambda image: torch.from_numpy(image.copy()).permute(2, 0, 1) / 255,
        "to_image": lambda tensor: (tensor * 255).round().byte().permute(1, 2, 0).numpy(),
        "run": lambda values, step: json.dumps([list(values), step]),
        "train": train,
    }


@each
def test_an_example_runs_as_it_stands(habit: Habit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = a_loop(tmp_path)
    exec(compile(habit.example, habit.point, "exec"), names)
    given = {"loader_checks": diagnostics.LoaderChecks(), "gradient_checks": diagnostics.GradientChecks()}
    for name in re.findall(r"^def (test_\w+)", habit.example, re.MULTILINE):
        wanted = names[name].__code__.co_varnames[: names[name].__code__.co_argcount]
        names[name](*(given[fixture] for fixture in wanted))
    assert bool(list(tmp_path.glob("*.html"))) == ("save(" in habit.example)
