"""A script's step on both clocks, and what ended it: measured in real children on the simulated device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bugs.zoo.keeper.measurement import STEP, Span, Step, measure_memory
from bugs.zoo.keeper.recording import measured_step

ROOT = Path(__file__).parents[3]
LAST_WORDS = "AcceleratorError: CUDA error: device-side assert triggered (simulated device)"


def script(folder: Path, *, label: int = 1, loop: str = "model.train()") -> Path:
    """A script with all that a step needs, and two outputs; its loop is not to be reached."""
    path = folder / "train.py"
    path.write_text(
        "from types import SimpleNamespace\n"
        "import torch\n"
        "from bugs import lab\n"
        "class Model(torch.nn.Module):\n"
        "    config = SimpleNamespace(num_labels=2)\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.layer = torch.nn.Linear(4, 2)\n"
        "    def forward(self, inputs):\n"
        "        return SimpleNamespace(logits=self.layer(inputs))\n"
        "device = lab.device()\n"
        "model = Model().to(device)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        f"train_loader = [dict(inputs=torch.ones(3, 4), labels=torch.tensor([0, 1, {label}]))]\n"
        "print('prepared')\n"
        f"\n{loop}\n"
        "raise SystemExit('the loop was reached')\n"
    )
    return path


class TestMeasureStep:
    def test_a_sound_step_is_seen_to_its_end_by_both_clocks(self, tmp_path: Path, torch_forks: Any) -> None:
        program = f"from bugs.zoo.keeper.measurement import main; main(['step', {str(script(tmp_path))!r}])"
        done = torch_forks.run(program, folder=ROOT, ZOO_DEVICE="simulated")
        step = Step.of(json.loads(done.stdout))
        assert (step.device, step.error) == ("simulated device", "")
        assert [span.name for span in step.host] == list(STEP)
        assert {wait.name for wait in step.waits} == {"item", "synchronize"}
        assert [name for name in STEP if name in {span.name for span in step.work}] == [
            name for name in STEP if name not in ("loss.item()", "synchronize")
        ]
        assert len(step.launches) == len(step.work)
        assert all(
            launched <= work.started <= work.ended for launched, work in zip(step.launches, step.work, strict=True)
        )
        spans = [moment for span in step.host for moment in (span.started, span.ended)]
        assert spans == sorted(spans)
        assert step.work[-1].ended <= spans[-1]

    def test_a_step_that_fails_is_seen_as_far_as_it_came(self, tmp_path: Path) -> None:
        step = measured_step(script(tmp_path, label=2), ZOO_DEVICE="simulated")
        assert step.error == LAST_WORDS
        assert [span.name for span in step.host] == [
            "copy to the device",
            "forward",
            "cross_entropy",
            "loss.item()",
        ]
        assert step.work[-1].name == "cross_entropy"
        assert step.work[-1].ended <= step.host[-1].ended

    @pytest.mark.exhaustive
    def test_the_cpu_has_no_second_clock(self, tmp_path: Path) -> None:
        path = script(tmp_path)
        with pytest.raises(RuntimeError) as caught:
            measured_step(path, ZOO_DEVICE="cpu")
        command, *_, last = str(caught.value).splitlines()
        assert command == f"-m bugs.zoo.keeper.measurement step {path} ended with exit code 1:"
        assert last == (
            f"ValueError: {path} trains on the CPU, which is the host: there is no second clock to read"
        )

    def test_a_script_without_the_line_before_its_loop_is_named(self, tmp_path: Path) -> None:
        path = script(tmp_path, loop="trainer.train()")
        with pytest.raises(RuntimeError) as caught:
            measured_step(path)
        assert str(caught.value).splitlines()[-1] == (
            f"ValueError: {path}: expected a line model.train() before the loop, found none"
        )


class TestMeasureMemory:
    def test_has_what_ended_the_script_and_no_peak_without_a_card(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        path = tmp_path / "train.py"
        path.write_text("import torch\nprint('filling')\nraise torch.OutOfMemoryError('no room for\\nso much')\n")
        assert measure_memory(path) == {
            "exception": "OutOfMemoryError: no room for\nso much",
            "allocated_peak": None,
            "reserved_peak": None,
        }

    def test_has_no_exception_of_a_script_that_came_to_its_end(self, tmp_path: Path) -> None:
        path = tmp_path / "train.py"
        path.write_text("print('eval_accuracy=0.7')\n")
        assert measure_memory(path)["exception"] is None


class TestStep:
    def test_is_made_again_of_its_own_json(self) -> None:
        values = {
            "device": "simulated device",
            "host": [{"name": "forward", "started": 0.0, "ended": 2.0}],
            "waits": [],
            "launches": [1.0],
            "work": [{"name": "forward", "started": 1.5, "ended": 3.0}],
            "error": "",
        }
        assert Step.of(values) == Step(
            "simulated device", (Span("forward", 0.0, 2.0),), (), (1.0,), (Span("forward", 1.5, 3.0),), ""
        )
