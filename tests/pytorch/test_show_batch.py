"""`show_batch` reads a loader as training would and changes nothing; `diagnose batch` ends before any step."""

import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

import diagnostics
from diagnostics.collectors.pytorch.watch.metrics.first_batches import FirstBatches
from diagnostics.collectors.transformers.pipeline import TrainerPipeline
from diagnostics.errors import InvalidInput
from tests.support.tiny_bert import tokenized_rows, tokenizer, trainer

MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)


class Normalize:
    """As torchvision's, which is not installed here."""

    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, image):
        return (image - torch.tensor(self.mean)[:, None, None]) / torch.tensor(self.std)[:, None, None]


class Pictures(Dataset):
    """Pictures of one brightness each, which is their label; reads are counted, and random numbers drawn."""

    def __init__(self, transform=None):
        self.transform, self.reads = transform, 0

    def __len__(self):
        return 40

    def __getitem__(self, index):
        self.reads += 1
        random.random(), np.random.rand(), torch.rand(1)
        image = torch.full((3, 16, 16), index % 4 / 4)
        return image if self.transform is None else self.transform(image), index % 4


def states():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()


def shades(view):
    return [int(pixels[0, 0, 0]) for pixels in view.inputs[0].values]


def test_a_loader_is_left_as_it_was():
    generator = torch.Generator().manual_seed(1)
    dataset = Pictures()
    loader = DataLoader(dataset, batch_size=16, shuffle=True, generator=generator)
    before = states(), generator.get_state().tolist()
    (view,) = diagnostics.show_batch(loader).views
    assert (states(), generator.get_state().tolist()) == before
    assert dataset.reads == 0
    assert (view.size, view.shown, view.title) == (16, 8, "a batch of a DataLoader")
    assert shades(view) == [round(255 * label / 4) for label in view.targets[0].values]


def test_a_known_normalisation_is_undone_and_said():
    loader = DataLoader(Pictures(Normalize(MEAN, STD)), batch_size=16)
    (view,) = diagnostics.show_batch(loader).views
    assert shades(view) == [round(255 * label / 4) for label in view.targets[0].values]
    assert view.inputs[0].notes == ("undone for display: Normalize, mean 0.5, 0.4, 0.3, std 0.2, 0.25, 0.3",)


def test_a_vocabulary_of_the_dataset_decodes_its_ids():
    class Texts(Dataset):
        words = None

        def __init__(self):
            self.words = {"<pad>": 0, "<unk>": 1, "good": 2, "film": 3, "bad": 4}

        def __len__(self):
            return 8

        def __getitem__(self, index):
            return torch.tensor([2 + 2 * (index % 2), 3, 1, 0, 0]), index % 2

    picture = diagnostics.show_batch(DataLoader(Texts(), batch_size=4), rows=1)
    assert "│good│film│<unk>│<pad>│<pad>│" in picture.to_text(80)
    assert picture.views[0].inputs[0].tokens.rows[0].label == "0"


def test_half_precision_and_gradients_are_no_obstacle():
    batch = torch.rand(4, 3, 16, 16, dtype=torch.bfloat16, requires_grad=True), torch.tensor([1, 0, 1, 0])
    (view,) = diagnostics.show_batch(batch).views
    assert (view.inputs[0].kind, view.targets[0].kind) == ("images", "classes")


@pytest.mark.parametrize("source", [torch.nn.Linear(3, 3), TensorDataset(torch.rand(4, 3))], ids=["model", "rows"])
def test_what_has_no_batches_is_named(source):
    with pytest.raises(InvalidInput, match=r"Pass|takes"):
        diagnostics.show_batch(source)


def test_an_error_of_the_dataset_is_its_own():
    class Broken(Pictures):
        def __getitem__(self, index):
            raise OSError("no such picture")

    with pytest.raises(InvalidInput, match="no such picture"):
        diagnostics.show_batch(DataLoader(Broken(), batch_size=4))


def test_a_watched_loop_shows_training_next_to_evaluation():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.rand(64, 12), torch.randint(0, 3, (64,))), batch_size=16)
    model = torch.nn.Linear(12, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with diagnostics.watch(model, optimizer) as watch:
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            watch.step(loss)
        with torch.no_grad():
            model(torch.rand(5, 12))
    report = watch.report()
    assert [(view.title, view.size) for view in report.batches] == [("training", 16), ("evaluation", 5)]
    training = report.batches[0].inputs[0]
    assert np.array_equal(training.values, loader.dataset.tensors[0][:8].numpy())
    assert "The first batch" in report.rendered("html")
    assert "<b>Evaluation: 5 rows</b>" in report._repr_html_()


SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset
print("started")
loader = DataLoader(TensorDataset(torch.rand(64, 12), torch.randint(0, 3, (64,))), batch_size=16)
model = torch.nn.Linear(12, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
try:
    for inputs, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        print("stepped")
finally:
    torch.save(model.state_dict(), "best.pt")
"""


HIDDEN = "[tool.diagnostics]\nshow-batch = false\n"


def diagnose(command, folder, script, *options):
    (folder / "train.py").write_text(script)
    command = [sys.executable, "-m", "diagnostics", command, *options, "train.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def diagnose_batch(folder, script, *options):
    return diagnose("batch", folder, script, *options)


def test_diagnose_batch_ends_before_the_first_step_and_saves_nothing(tmp_path):
    done = diagnose_batch(tmp_path, SCRIPT)
    assert (done.returncode, done.stdout) == (0, "started\n")
    assert "training: 16 rows, 8 shown" in done.stderr
    assert "read as a table, 16 rows x 12 features" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["train.py"]


def test_diagnose_batch_says_when_there_is_none(tmp_path):
    done = diagnose_batch(tmp_path, "print('done')")
    assert (done.returncode, done.stdout) == (1, "done\n")
    assert "ended before its first training batch" in done.stderr


def test_diagnose_batch_keeps_an_existing_file(tmp_path):
    (tmp_path / "batch.html").write_text("mine")
    assert diagnose_batch(tmp_path, SCRIPT, "--output", "batch.html").returncode == 2
    assert (tmp_path / "batch.html").read_text() == "mine"


@pytest.mark.parametrize("settings", ["", HIDDEN], ids=["unset", "hidden"])
def test_diagnose_batch_shows_it_whatever_the_settings_say(tmp_path, settings):
    (tmp_path / "pyproject.toml").write_text(settings)
    assert "training: 16 rows, 8 shown" in diagnose_batch(tmp_path, SCRIPT).stderr


@pytest.mark.parametrize(
    ("settings", "options", "shown"),
    [("", (), True), ("", ("--no-batch",), False), (HIDDEN, (), False)],
    ids=["by default", "option", "setting"],
)
def test_a_page_without_the_first_batch_holds_no_row(tmp_path, settings, options, shown):
    (tmp_path / "pyproject.toml").write_text(settings)
    evaluated = "with torch.no_grad():\n    model(torch.rand(5, 12))\n"
    done = diagnose("run", tmp_path, SCRIPT + evaluated, *options, "--output", "report.html", "--fail-on", "never")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text()
    assert [text in page for text in ("The first batch", "Training: 16 rows", "Evaluation: 5 rows")] == [shown] * 3


def test_watch_copies_no_row_where_the_settings_say_so(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(HIDDEN)
    monkeypatch.chdir(tmp_path)
    model = torch.nn.Linear(12, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with diagnostics.watch(model, optimizer) as watch:
        loss = torch.nn.functional.cross_entropy(model(torch.rand(16, 12)), torch.randint(0, 3, (16,)))
        loss.backward()
        optimizer.step()
        watch.step(loss)
    report = watch.report()
    assert (report.batches, watch._probe.probes[FirstBatches]._kept) == ((), {})
    assert "The first batch" not in report.rendered("html")


def test_an_examination_judges_the_rows_and_shows_none(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(HIDDEN)
    monkeypatch.chdir(tmp_path)
    inputs = torch.rand(64, 12)
    inputs[3, 0] = float("nan")
    loader = DataLoader(TensorDataset(inputs, torch.randint(0, 3, (64,))), batch_size=16)
    model = torch.nn.Linear(12, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    report = diagnostics.examine(model, loader, torch.nn.CrossEntropyLoss(), optimizer)
    assert ("non-finite-inputs" in [finding.rule for finding in report.findings], report.batches) == (True, ())


def test_the_evaluation_rows_of_a_trainer_are_read_unnoticed():
    rows = tokenized_rows()
    of_evaluation = trainer(rows, processing_class=tokenizer(), eval_dataset=rows.select([3, 1]))
    pipeline = TrainerPipeline(of_evaluation)
    before = states()
    with pipeline.untouched():
        batch = pipeline.evaluation_batch()
    assert batch["labels"].tolist() == [rows[3]["label"], rows[1]["label"]]
    assert states() == before
    assert TrainerPipeline(trainer(rows, processing_class=tokenizer())).evaluation_batch() is None
