"""`diagnose run` on a Trainer and on Keras, in processes of their own."""

import json

import pytest

TRAINER = """
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
    trainer.train()
    print("trained")
    """
KERAS = """
    import keras
    import numpy as np

    keras.utils.set_random_seed(0)
    features = np.random.default_rng(0).normal(size=(96, 4)).astype("float32")
    labels = features[:, :3].argmax(axis=1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(OUTPUTS)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(1e-2), loss=loss)
    model.fit(features, labels, epochs=2, verbose=0)
    print("trained")
    """


@pytest.mark.slow
@pytest.mark.exhaustive  # tests/keras/run/test_handed_batches.py fits as often in its own process
def test_a_model_that_is_fitted_again_and_again_is_examined_once_and_watched_a_few_times(diagnose, tmp_path):
    text = KERAS.replace("OUTPUTS", "3").replace(
        "model.fit(features, labels, epochs=2", "for _ in range(20):\n        model.fit(features, labels, epochs=1"
    )
    assert diagnose(text, "--output", "r.json").returncode == 0
    report = json.loads((tmp_path / "r.json").read_text())
    watched = "watched 3 steps of Sequential"
    first, *others = [stage["detail"] for stage in report["stages"] if stage["name"] != "second look"]
    assert first == f"examined Sequential with arrays; {watched}"
    assert others == [watched] * 3


@pytest.mark.slow
@pytest.mark.exhaustive  # `nox -s verify` does it with exhibits 01, 02, 04, 09 and 17
@pytest.mark.parametrize("text", [TRAINER, KERAS], ids=["Trainer", "Keras"])
class TestFrameworks:
    def test_a_training_is_examined_and_watched(self, diagnose, tmp_path, text):
        ended = diagnose(text.replace("OUTPUTS", "3"), "--output", "r.json", "--quiet")
        report = json.loads((tmp_path / "r.json").read_text())
        assert (ended.returncode, ended.stdout.endswith("trained\n")) == (0, True)
        assert [finding for finding in report["findings"] if finding["severity"] != "note"] == []
        assert report["faults"] == []
        names = [stage["name"] for stage in report["stages"]]
        assert ("one-batch overfit" in names, "updates" in names) == (True, True)

    def test_the_exception_of_a_broken_one_is_explained_at_its_own_line(self, diagnose, tmp_path, text):
        ended = diagnose(text.replace("OUTPUTS", "2"), "--output", "r.json", "--quiet")
        report = json.loads((tmp_path / "r.json").read_text())
        assert ended.returncode == 1
        # No frame of ours stands between the script's and the framework's. TensorFlow's message lists all callers.
        assert "diagnostics/" not in ended.stderr.split("Detected at node")[0]
        (finding,) = [finding for finding in report["findings"] if finding["severity"] != "note"]
        assert (finding["rule"], finding["where"]["file"]) == ("labels-out-of-range", "train.py")
        assert report["faults"] == []


@pytest.mark.slow
@pytest.mark.exhaustive  # tests/keras/run/test_data.py fits on generators in its own process
def test_a_training_on_a_generator_is_examined_by_a_batch_that_it_draws(diagnose, tmp_path):
    text = KERAS.replace("OUTPUTS", "3").replace(
        "model.fit(features, labels, epochs=2, verbose=0)",
        "model.fit(((features, labels) for _ in range(4)), verbose=0)",
    )
    ended = diagnose(text, "--output", "r.json", "--quiet")
    report = json.loads((tmp_path / "r.json").read_text())
    assert (ended.returncode, ended.stdout.endswith("trained\n")) == (0, True)
    assert (report["findings"], report["faults"]) == ([], [])
    stages = {stage["name"]: stage for stage in report["stages"]}
    for name in ("dataset", "batch", "forward and loss", "backward", "updates"):
        assert stages[name]["status"] == "passed", stages[name]


ACCELERATE = """
    import torch
    from accelerate import Accelerator

    torch.manual_seed(0)
    features = torch.randn(96, 4)
    rows = [{"features": row, "labels": row[:3].argmax()} for row in features]
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(rows, batch_size=32, shuffle=True)
    accelerator = Accelerator(cpu=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        loss = torch.nn.functional.cross_entropy(model(batch["features"]), batch["labels"])
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    """


def test_rows_of_a_loader_that_accelerate_prepared_are_read(forked, tmp_path):
    assert forked(ACCELERATE, "--output", "r.json", "--second-look", "off").returncode == 0
    report = json.loads((tmp_path / "r.json").read_text())
    dataset = next(stage for stage in report["stages"] if stage["name"] == "dataset")
    assert dataset["status"] == "passed"
    assert dataset["detail"].startswith("96 rows, 96 read, with features, labels")
