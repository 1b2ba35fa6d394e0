"""What is written down of a GPU, and read again. The scripts run for real, on the simulated device."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from bugs.zoo.keeper import recording
from bugs.zoo.keeper.catalogue import Exhibit, load_catalogue
from bugs.zoo.keeper.measurement import Step
from bugs.zoo.keeper.recording import Card

CATALOGUE = load_catalogue(Path(__file__).parents[3])
CARD = Card(name="Tesla T4", memory=15 << 30, driver="570.86.10", torch="2.13.0+cu130", cuda="13.0")
LOST = "torch.AcceleratorError: CUDA error: device-side assert triggered (simulated device)"
SCRIPT = """\
from types import SimpleNamespace
import torch
from bugs import lab


class Model(torch.nn.Module):
    config = SimpleNamespace(num_labels=OUTPUTS)

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, OUTPUTS)

    def forward(self, inputs):
        return SimpleNamespace(logits=self.layer(inputs))


device = lab.device()
model = Model().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = [dict(inputs=torch.ones(3, 4), labels=torch.tensor([0, 1, 2]))]

model.train()
for batch in train_loader:
    logits = model(batch["inputs"].to(device)).logits
    loss = torch.nn.functional.cross_entropy(logits, batch["labels"].to(device))
    print(f"{loss.item():.3f}")
"""


@pytest.fixture
def exhibit(tmp_path: Path) -> Exhibit:
    """Cage 03 with scripts that take a second: a head of two outputs, and its twin with three."""
    moved = dataclasses.replace(CATALOGUE["03"], root=tmp_path)
    for script, outputs in ((moved.script, "2"), (moved.solution, "3")):
        script.parent.mkdir(parents=True)
        script.write_text(SCRIPT.replace("OUTPUTS", outputs))
    return moved


@pytest.mark.exhaustive
class TestRecordError:
    def test_has_both_tracebacks_and_a_step_of_each_twin(self, exhibit: Exhibit) -> None:
        record = recording.record_error(exhibit, device="simulated")
        (command, told), (blocking, at_once) = record["said"].items()
        assert command == "python bugs/03_cuda_error/train.py"
        assert blocking == f"CUDA_LAUNCH_BLOCKING=1 {command}"
        lines = told.splitlines()
        first = lines.index("Traceback (most recent call last):")
        assert all("Assertion `t >= 0 && t < n_classes` failed." in line for line in lines[:first])
        assert lines[first + 1] == '  File "bugs/03_cuda_error/train.py", line 26, in <module>'
        assert lines[first + 2] == '    print(f"{loss.item():.3f}")'
        assert LOST in lines
        assert '  File "bugs/03_cuda_error/train.py", line 25, in <module>' in at_once
        assert ", in cross_entropy\n" in at_once
        broken, repaired = (Step.of(step) for step in record["steps"].values())
        assert list(record["steps"]) == ["bugs/03_cuda_error/train.py", "solutions/03_cuda_error/train.py"]
        assert broken.error == LOST.removeprefix("torch.")
        assert repaired.error == ""
        json.dumps(record)


class TestRecordMemory:
    def test_has_what_the_broken_script_said_and_the_peaks_of_both(self, exhibit: Exhibit) -> None:
        exhibit.script.write_text("raise MemoryError('2 GiB, and 1 GiB is free')\n")
        exhibit.solution.write_text("print('eval_accuracy=0.7')\n")
        record = recording.record_memory(exhibit)
        broken, repaired = "bugs/03_cuda_error/train.py", "solutions/03_cuda_error/train.py"
        assert record["said"] == {f"python {broken}": "MemoryError: 2 GiB, and 1 GiB is free"}
        assert list(record["memory"]) == [broken, repaired]
        assert set(record["memory"][repaired]) == {"allocated_peak", "reserved_peak"}


class TestWriteAndRead:
    RECORD = {"said": {"python train.py": "RuntimeError: é"}, "steps": {}, "memory": {}}

    def test_nothing_is_recorded_at_first(self, exhibit: Exhibit) -> None:
        assert recording.read(exhibit) is None

    def test_what_was_written_is_read(self, exhibit: Exhibit) -> None:
        path = recording.write(exhibit, CARD, self.RECORD, "2026-11-21")
        assert path == exhibit.script.parent / "on_a_card.json"
        assert recording.read(exhibit) == {
            "version": 1,
            "exhibit": "03",
            "date": "2026-11-21",
            "card": {
                "name": "Tesla T4",
                "memory": 16106127360,
                "driver": "570.86.10",
                "torch": "2.13.0+cu130",
                "cuda": "13.0",
            },
            "said": {"python train.py": "RuntimeError: é"},
            "steps": {},
            "memory": {},
        }

    def test_a_record_of_another_version_is_refused(self, exhibit: Exhibit) -> None:
        path = exhibit.script.parent / "on_a_card.json"
        path.write_text('{"version": 2}')
        with pytest.raises(ValueError, match="version 2") as caught:
            recording.read(exhibit)
        assert str(caught.value) == f"{path}: version 2, expected 1; run nox -s record-gpu again"

    @pytest.mark.parametrize("id", recording.RECORDED)
    def test_what_lies_in_the_zoo_can_be_read(self, id: str) -> None:
        record = recording.read(CATALOGUE[id])
        assert record is None or record["exhibit"] == id


class TestMain:
    def test_says_that_there_is_no_card(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(recording, "find_card", lambda: None)  # also on a machine that has one
        assert recording.main() == 1
        assert capsys.readouterr().err == (
            "record-gpu: PyTorch finds no CUDA GPU here (torch.cuda.is_available() is False), so there is "
            "nothing to record. Run it on a machine with a GPU.\n"
        )
