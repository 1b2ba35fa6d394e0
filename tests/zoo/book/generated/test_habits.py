"""The table of habits: complete, linked, tested, and its examples run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diagnostics
from book.generated.habits import AREA, Habit, habits, habits_page
from book.generated.teaching import Place, points
from tests.support.notebooks import numbered, write

ROOT = Path(__file__).resolve().parents[4]
POINTS = points(ROOT / "book" / "teaching_points.toml")
HABITS = habits(ROOT / "book" / "habits.toml")
each = pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.point)


def test_every_habit_of_the_list_has_a_row() -> None:
    assert [habit.point for habit in HABITS] == [point.name for point in POINTS if point.area == AREA]


@each
def test_a_row_calls_what_there_is_and_names_its_test(habit: Habit) -> None:
    assert all(hasattr(diagnostics, name) for name in habit.call)
    fixtures = {"LoaderChecks": "loader_checks", "GradientChecks": "gradient_checks"}
    assert all(fixtures.get(name, f"diagnostics.{name}(") in habit.example for name in habit.call)
    tested = (ROOT / habit.test).read_text("utf-8")
    assert "def test_" in tested
    if not habit.test.startswith("tests/unit/report/"):
        assert any(name in tested for name in habit.call)


def test_the_page_links_chapters_and_holds_the_examples() -> None:
    where = {point.name: [Place("chapters/a", "A", "B")] for point in POINTS}
    page = habits_page(HABITS, POINTS, where)
    for habit in HABITS:
        assert habit.example in page
        (row,) = (line for line in page.splitlines() if f"](#{habit.point})" in line)
        assert "[A](chapters/a.ipynb), *B*" in row
        assert f"\n({habit.point})=\n" in page


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
