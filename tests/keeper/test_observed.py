"""A script under the library's eyes behaves as it does alone, and what the library says is kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bugs.keeper.observed import Observation

OUT_OF_RANGE = """\
import torch

labels = torch.tensor([0, 1, 2, 0])
logits = torch.zeros(4, 2, requires_grad=True)
torch.nn.functional.cross_entropy(logits, labels)
"""
TRAINER = """\
import torch
from transformers import Trainer, TrainingArguments


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, OUTPUTS)

    def forward(self, features, labels):
        logits = self.layer(features)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


torch.manual_seed(0)
features = torch.randn(96, 4)
rows = [{"features": row, "labels": row[:3].argmax()} for row in features]
arguments = TrainingArguments("out", max_steps=2, report_to=[], save_strategy="no", disable_tqdm=True)
trainer = Trainer(Classifier(), arguments, train_dataset=rows)
before = trainer.model.layer.weight.detach().clone()
trainer.train()
print("trained:", not torch.equal(before, trainer.model.layer.weight.detach()))
"""
LOOP = """\
import torch

torch.manual_seed(0)
features = torch.randn(96, 4)
labels = features[:, :3].argmax(dim=1)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(30):
    ZERO
    rows = torch.randperm(96)[:32]
    loss = torch.nn.functional.cross_entropy(model(features[rows]), labels[rows])
    loss.backward()
    optimizer.step()
END
"""
KERAS = """\
import keras
import numpy as np

keras.utils.set_random_seed(0)
features = np.random.default_rng(0).normal(size=(96, 4)).astype("float32")
labels = features[:, :3].argmax(axis=1)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(OUTPUTS)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss=loss)
model.fit(features, labels, epochs=2, verbose=0)
print("fitted")
"""


def run(script: Path, *, observed: bool = True, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    report = script.with_suffix(".json")
    observation = ["-m", "bugs.keeper.observed", "--report", str(report)] if observed else []
    command = [sys.executable, *observation, str(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder or script.parent)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


class TestScript:
    @pytest.mark.parametrize(
        "text",
        [
            "import sys\nprint(sys.argv, sys.path[0], __name__, __file__)\n",
            "def loss(label):\n    raise ValueError(f'label {label}\\nis bad')\n\nloss(2)\n",
            "try:\n    {}['label']\nexcept KeyError as error:\n    raise ValueError('odd') from error\n",
            "import json\njson.loads('x')\n",
            "import sys\nsys.exit(3)\n",
            "import sys\nsys.exit('no labels')\n",
            "model = (\n",
            "import pickle\nclass Row: pass\npickle.loads(pickle.dumps(Row()))\nprint('pickled')\n",
        ],
    )
    def test_behaves_as_it_does_alone(self, script: Path, text: str) -> None:
        script.write_text(text)
        alone, observed = run(script, observed=False), run(script)
        assert (observed.returncode, observed.stdout, observed.stderr) == (
            alone.returncode,
            alone.stdout,
            alone.stderr,
        )

    def test_gets_no_framework_that_it_does_not_import(self, script: Path) -> None:
        script.write_text("import sys\nprint({'torch', 'transformers', 'tensorflow'} & set(sys.modules))\n")
        assert run(script).stdout == "set()\n"


class TestExplain:
    def test_the_exception_that_ends_the_script_is_explained(self, script: Path) -> None:
        script.write_text(OUT_OF_RANGE)
        assert run(script).returncode == 1
        observation = Observation.load(script.with_suffix(".json"))
        assert observation.faults == []
        assert observation.explained is not None
        finding = observation.explained["findings"][0]
        assert finding["rule"] == "labels-out-of-range"
        assert (finding["where"]["line"], finding["where"]["function"]) == (5, "<module>")

    def test_a_script_that_ends_well_has_nothing_to_explain(self, script: Path) -> None:
        script.write_text("print('done')\n")
        run(script)
        assert Observation.load(script.with_suffix(".json")) == Observation()

    def test_a_fault_of_the_library_is_kept_apart_from_the_scripts_exception(self, script: Path) -> None:
        script.write_text(
            "import diagnostics\n\ndef explain(error):\n    raise RuntimeError('the tool broke')\n\n"
            "diagnostics.explain = explain\nraise ValueError('the script broke')\n"
        )
        done = run(script)
        assert done.stderr.endswith("ValueError: the script broke\n")
        assert "the tool broke" not in done.stderr
        (fault,) = Observation.load(script.with_suffix(".json")).faults
        assert fault.endswith("RuntimeError: the tool broke")


@pytest.mark.slow
class TestExamine:
    def test_a_trainer_is_examined_before_it_trains_and_then_trains(self, script: Path) -> None:
        script.write_text(TRAINER.replace("OUTPUTS", "3"))
        done = run(script)
        assert "trained: True\n" in done.stdout
        observation = Observation.load(script.with_suffix(".json"))
        assert observation.faults == []
        (report,) = observation.examined
        assert [f["rule"] for f in report["findings"] if f["severity"] in ("error", "warning")] == []

    def test_a_keras_model_is_examined_before_it_is_fitted(self, script: Path) -> None:
        script.write_text(KERAS.replace("OUTPUTS", "3"))
        assert run(script).stdout == "fitted\n"
        observation = Observation.load(script.with_suffix(".json"))
        assert observation.faults == []
        (report,) = observation.examined
        assert [f["rule"] for f in report["findings"] if f["severity"] in ("error", "warning")] == []

    def test_a_broken_keras_model_is_examined_and_its_exception_explained_at_its_own_line(
        self, script: Path
    ) -> None:
        script.write_text(KERAS.replace("OUTPUTS", "2"))
        done = run(script)
        assert "Received a label value of 2 which is outside the valid range of [0, 2)" in done.stderr
        observation = Observation.load(script.with_suffix(".json"))
        assert observation.faults == []
        (report,) = observation.examined
        assert report["findings"][0]["rule"] == "labels-out-of-range"
        assert observation.explained is not None
        finding = observation.explained["findings"][0]
        assert (finding["rule"], finding["where"]["line"]) == ("labels-out-of-range", 10)

    def test_a_broken_trainer_is_examined_and_its_exception_explained(self, script: Path) -> None:
        script.write_text(TRAINER.replace("OUTPUTS", "2"))
        done = run(script)
        assert done.stderr.rstrip().endswith("IndexError: Target 2 is out of bounds.")
        assert "observed.py" not in done.stderr  # its frame between the script's and the Trainer's is left out
        observation = Observation.load(script.with_suffix(".json"))
        assert observation.faults == []
        (report,) = observation.examined
        assert report["findings"][0]["rule"] == "labels-out-of-range"
        assert observation.explained is not None
        assert observation.explained["findings"][0]["rule"] == "labels-out-of-range"


class TestWatch:
    @pytest.mark.parametrize("end", ["print('done')", "raise SystemExit(3)", "1 / 0"])
    def test_a_plain_loop_is_watched_however_it_ends(self, script: Path, end: str) -> None:
        script.write_text(LOOP.replace("ZERO", "pass").replace("END", end))
        alone, observed = run(script, observed=False), run(script)
        assert (observed.returncode, observed.stderr) == (alone.returncode, alone.stderr)
        observation = Observation.load(script.with_suffix(".json"))
        assert observation.faults == []
        (report,) = observation.watched
        assert report["title"] == "watched 30 steps of Linear"
        assert report["findings"][0]["rule"] == "gradients-not-zeroed"

    @pytest.mark.parametrize(
        ("text", "title"),
        [(TRAINER, "watched 2 steps of Classifier with a Trainer"), (KERAS, "watched 6 steps of Sequential")],
        ids=["Trainer", "Keras"],
    )
    def test_a_training_of_a_framework_is_watched_as_well(self, script: Path, text: str, title: str) -> None:
        script.write_text(text.replace("OUTPUTS", "3"))
        assert run(script).returncode == 0
        observation = Observation.load(script.with_suffix(".json"))
        assert observation.faults == []
        assert [report["title"] for report in observation.watched] == [title]

    def test_of_a_healthy_loop_nothing_is_said(self, script: Path) -> None:
        script.write_text(LOOP.replace("ZERO", "optimizer.zero_grad()").replace("END", ""))
        run(script)
        (report,) = Observation.load(script.with_suffix(".json")).watched
        assert (report["ok"], report["findings"]) == (True, [])
