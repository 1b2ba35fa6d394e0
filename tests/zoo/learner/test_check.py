"""A check of small scripts that really train: what is a repair, and what only looks like one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bugs.zoo.keeper.catalogue import Exhibit, load_catalogue
from bugs.zoo.learner.checking.check import check
from bugs.zoo.learner.checking.result import Check

ROOT = Path(__file__).resolve().parents[3]
TRAIN = '''\
"""Learn which of two sums is larger.

$ python bugs/12_never_zeroed/train.py
"""

import os

import torch
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("ZOO_SEED", 0))
torch.manual_seed(SEED)
rows = torch.randn(1_000, 8)
labels = (rows[:, :4].sum(dim=1) > rows[:, 4:].sum(dim=1)).long()
train = DataLoader(TensorDataset(rows[:800], labels[:800]), 32, shuffle=True)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr={rate})

for epoch in range(8):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    correct = model(rows[800:]).argmax(dim=1) == labels[800:]
print(f"eval_accuracy={{correct.float().mean():.3f}}")
'''
KERAS = """\
import os

import keras
import numpy as np

SEED = int(os.environ.get("ZOO_SEED", 0))
keras.utils.set_random_seed(SEED)
rows = np.random.default_rng(SEED).normal(size=(1_000, 8)).astype("float32")
labels = (rows[:, :4].sum(axis=1) > rows[:, 4:].sum(axis=1)).astype("int64")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)])
model.compile(
    optimizer=keras.optimizers.SGD({rate}),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(rows[:800], labels[:800], batch_size=32, epochs=8, verbose=0)
metrics = model.evaluate(rows[800:], labels[800:], return_dict=True, verbose=0)
print(f"eval_accuracy={{metrics['accuracy']:.3f}}")
"""
BROKEN, SOLUTION = TRAIN.format(rate="0.0"), TRAIN.format(rate="0.5")
PRINTED = 'import os\nSEED = int(os.environ.get("ZOO_SEED", 0))\nprint("eval_accuracy=0.95")\n'


class TestWithoutTraining:
    """What needs no framework."""

    def test_the_same_failure_and_a_new_one(self, zoo: Any) -> None:
        zoo.cage()
        zoo.bugs("try", "04")
        assert self.said(zoo) == (
            "It fails as it did: ValueError: Target 2 is out of bounds, from line 5 of your script."
        )
        script = zoo.root / "attempts" / "04_wrong_label_count" / "train.py"
        script.write_text("print(undefined)\n")
        assert self.said(zoo) == (
            "It fails, but not as the exhibit's script does: NameError: name 'undefined' is not defined, from "
            "line 1 of your script."
        )

    @staticmethod
    def said(zoo: Any) -> str:
        """What a check says of the run."""
        done = zoo.bugs("check", "04", "--json")
        assert done.returncode == 1
        judgement, *_ = json.loads(done.stdout)["judgements"]
        return judgement["said"]

    def test_a_printed_number_is_no_repair(self, zoo: Any) -> None:
        zoo.cage()
        zoo.bugs("try", "04")
        script = zoo.root / "attempts" / "04_wrong_label_count" / "train.py"
        script.write_text(PRINTED)
        values = json.loads(zoo.bugs("check", "04", "--json").stdout)
        wrong = [each["name"] for each in values["judgements"] if not each["ok"]]
        assert (values["passed"], wrong) == (False, ["training", "evaluation"])
        assert values["metrics"] == {"eval_accuracy": 0.95}

    @pytest.mark.skipif(sys.platform == "win32", reason="SIGINT")
    def test_watch_checks_again_when_the_script_is_saved(self, zoo: Any) -> None:
        zoo.cage()
        zoo.bugs("try", "04")
        script = zoo.root / "attempts" / "04_wrong_label_count" / "train.py"
        watching = subprocess.Popen(
            zoo.command("watch", "04", "--json"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=zoo.ENVIRONMENT,
        )
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        assert first["judgements"][0]["said"].startswith("It fails as it did")
        script.write_text(PRINTED)
        second = json.loads(watching.stdout.readline())
        assert second["metrics"] == {"eval_accuracy": 0.95}
        watching.send_signal(signal.SIGINT)
        _, stderr = watching.communicate(timeout=60)
        assert (watching.returncode, stderr) == (130, b"bugs: interrupted; nothing is left running\n")

    def test_a_new_version_of_the_cage_is_told(self, zoo: Any) -> None:
        original = zoo.cage()
        zoo.bugs("try", "04")
        original.write_text("OUTPUTS = 2\n" + original.read_text())
        notes = json.loads(zoo.bugs("check", "04", "--json").stdout)["notes"]
        assert notes == [
            "The exhibit's script has changed since you copied it. Yours was checked as it is; python -m bugs "
            "reset 04 copies the new one."
        ]


@pytest.fixture
def cage(zoo: Any) -> Exhibit:
    return small_cage(zoo, BROKEN, SOLUTION)


def small_cage(zoo: Any, broken: str, repaired: str) -> Exhibit:
    zoo.cage(
        "12_never_zeroed",
        broken=broken,
        repaired=repaired,
        symptom="silent",
        stage="optimizer",
        rules=["unchanged-parameters"],
        signature={"metric": "eval_accuracy", "comparison": "<", "value": 0.8, "seen": "nothing is learned"},
        recovery={"metric": "eval_accuracy", "comparison": ">=", "value": 0.85},
        effort={"updates": 200, "rows": 800, "judged": []},
        budget_s=60,
        budget_mb=3000,
    )
    return load_catalogue(zoo.root)["12"]


def checked(exhibit: Exhibit, text: str) -> tuple[Check, list[str]]:
    """The check, and the names of what it found wrong."""
    script = exhibit.root / "attempts" / exhibit.folder / "train.py"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(text)
    made = check(exhibit, script)
    return made, [judgement.name for judgement in made.judgements if not judgement.ok]


@pytest.mark.slow
def test_a_repair_passes_and_what_was_seen_is_told(cage: Exhibit) -> None:
    made, wrong = checked(cage, SOLUTION)
    assert wrong == [], made.judgements
    said = {judgement.name: judgement.said for judgement in made.judgements}
    assert said["training"] == "200 optimizer steps, with 800 different rows; ours: 200 and 800."
    accuracy = made.metrics["eval_accuracy"]
    assert said["evaluation"] == f"We evaluated your model ourselves, and got eval_accuracy={accuracy:.3f}."


@pytest.mark.exhaustive
def test_an_untouched_copy_of_an_untrained_model_has_taken_steps_and_changed_nothing(tmp_path: Path) -> None:
    exhibit = load_catalogue(ROOT)["16"]
    script = tmp_path / "train.py"
    script.write_text(exhibit.script.read_text())
    said = {judgement.name: judgement for judgement in check(exhibit, script).judgements}
    assert said["rules"].said == "diagnose run still reports this exhibit's bug, or a consequence of it."
    assert said["training"].said.startswith("563 optimizer steps")


@pytest.mark.exhaustive
class TestKeras:
    def test_a_repair_passes(self, zoo: Any) -> None:
        solution = KERAS.format(rate=0.5)
        made, wrong = checked(small_cage(zoo, KERAS.format(rate=0.0), solution), solution)
        assert wrong == [], made.judgements
        said = {judgement.name: judgement.said for judgement in made.judgements}
        assert said["training"] == "200 optimizer steps, with 800 different rows; ours: 200 and 800."

    def test_a_training_on_few_rows_with_a_printed_number_does_not(self, zoo: Any) -> None:
        broken = KERAS.format(rate=0.0)
        few = broken.replace("rows[:800], labels[:800]", "rows[:8], labels[:8]")
        made, wrong = checked(
            small_cage(zoo, broken, KERAS.format(rate=0.5)), few + 'print("eval_accuracy=0.95")\n'
        )
        assert {"training", "evaluation"} <= set(wrong), made.judgements


@pytest.mark.exhaustive
class TestOtherRepairs:
    def test_another_architecture(self, cage: Exhibit) -> None:
        text = SOLUTION.replace(
            "model = torch.nn.Linear(8, 2)",
            "model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))",
        )
        made, wrong = checked(cage, text)
        assert wrong == [], made.judgements

    def test_a_training_in_a_function(self, cage: Exhibit) -> None:
        lines = SOLUTION.split("for epoch")[1].split("\nmodel.eval()")[0].splitlines()
        body = "\n".join(f"    {line}" for line in [f"for epoch{lines[0]}", *lines[1:]])
        before, after = SOLUTION.split("for epoch")[0], SOLUTION.split("\nmodel.eval()")[1]
        made, wrong = checked(cage, f"{before}\ndef main():\n{body}\n\nmain()\nmodel.eval(){after}")
        assert wrong == [], made.judgements


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BROKEN, {"rules", "metric", "evaluation"}),
        (BROKEN + 'print("eval_accuracy=0.95")\n', {"rules", "evaluation"}),
        (SOLUTION.replace("rows[800:]", "rows[:800]").replace("labels[800:]", "labels[:800]"), {"evaluation"}),
        (SOLUTION.replace("rows[:800], labels[:800]", "rows[:8], labels[:8]"), {"training"}),
        (SOLUTION.replace('int(os.environ.get("ZOO_SEED", 0))', "7"), {"training"}),
        (
            SOLUTION.replace("TensorDataset(rows[:800], labels[:800])", "TensorDataset(rows, labels)"),
            {"evaluation"},
        ),
        (SOLUTION + "torch.Tensor.argmax = lambda self, dim: labels[800:]\n", {"honesty"}),
        (PRINTED + "import sys\nsys.stdout.flush()\nos._exit(0)\n", {"run"}),
        ("ZOO_SEED = 0\nmodel = (\n", {"run"}),
    ],
)
def test_what_only_looks_like_one(cage: Exhibit, text: str, expected: set[str]) -> None:
    made, wrong = checked(cage, text)
    assert expected <= set(wrong), made.judgements


@pytest.mark.exhaustive
def test_the_loop_from_the_command_line(zoo: Any, cage: Exhibit) -> None:
    zoo.bugs("try", "12")
    failed = zoo.bugs("check", "12", COLUMNS="80")
    assert failed.returncode == 1
    assert failed.stdout.startswith("exhibit 12: not fixed yet ")
    assert "✗ metric: " in failed.stdout
    assert max(map(len, failed.stdout.splitlines())) <= 80
    (Path(cage.root) / "attempts" / cage.folder / "train.py").write_text(SOLUTION)
    passed = zoo.bugs("check", "12", "--json")
    assert passed.returncode == 0
    values = json.loads(passed.stdout)
    assert values["passed"] is True
    cages = json.loads(zoo.bugs("progress", "--json").stdout)["cages"]
    assert (cages["12"]["checks"], cages["12"]["state"]) == (2, "fixed")
