"""`examine`: batches of every kind that PyTorch users make."""

from collections import namedtuple

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import diagnostics

GENERATOR = torch.Generator().manual_seed(0)
INPUTS = torch.randn(40, 6, generator=GENERATOR)
LABELS = INPUTS[:, :3].argmax(1)
LOADER = DataLoader(TensorDataset(INPUTS, LABELS), batch_size=8)
LOSS = nn.CrossEntropyLoss()


def classifier():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


def stage(report, name):
    (found,) = [stage for stage in report.stages if stage.name == name]
    return found.status, found.detail


class Rows(Dataset):
    def __init__(self, size=40, get=lambda index: (INPUTS[index % 40], LABELS[index % 40])):
        self.size, self.get = size, get

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return self.get(index)


class TestBatchesOfEveryKind:
    def check(self, report, batch):
        assert report.ok, str(report)
        assert report.faults == ()
        assert stage(report, "batch") == ("passed", batch)
        assert stage(report, "one-batch overfit")[0] == "passed"

    def test_nested_dicts(self):
        class TwoViews(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = classifier()

            def forward(self, image, about):
                return self.layers(image["left"] + image["right"])

        def get(index):
            views = {"left": INPUTS[index] / 2, "right": INPUTS[index] / 2}
            return {"image": views, "about": {"name": str(index), "id": index}, "label": LABELS[index]}

        report = diagnostics.examine(TwoViews(), DataLoader(Rows(get=get), batch_size=8), LOSS)
        self.check(report, "8 examples: image.left (8, 6), image.right (8, 6), about.id (8,), label (8,)")

    def test_named_tuples_whose_label_is_not_last(self):
        Row = namedtuple("Row", "features label length")

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = classifier()

            def forward(self, features, length):
                return self.layers(features)

        data = Rows(get=lambda index: Row(INPUTS[index], LABELS[index], 6))
        report = diagnostics.examine(Model(), DataLoader(data, batch_size=8), LOSS)
        self.check(report, "8 examples: features (8, 6), length (8,), label (8,)")

    def test_batches_that_the_dataset_made_itself(self):
        data = TensorDataset(INPUTS.reshape(5, 8, 6), LABELS.reshape(5, 8))
        report = diagnostics.examine(classifier(), DataLoader(data, batch_size=None), LOSS)
        self.check(report, "8 examples: input (8, 6), target (8,)")

    def test_batches_that_a_sampler_asks_for_at_once(self):
        sampler = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(range(40)), 8, drop_last=False)
        loader = DataLoader(TensorDataset(INPUTS, LABELS), batch_size=None, sampler=sampler)
        self.check(diagnostics.examine(classifier(), loader, LOSS), "8 examples: input (8, 6), target (8,)")

    def test_a_batch_sampler(self):
        sampler = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(range(40)), 8, drop_last=False)
        loader = DataLoader(TensorDataset(INPUTS, LABELS), batch_sampler=sampler)
        self.check(diagnostics.examine(classifier(), loader, LOSS), "8 examples: input (8, 6), target (8,)")

    def test_single_examples_without_a_batch_axis(self):
        loader = DataLoader(TensorDataset(INPUTS, LABELS), batch_size=None)
        self.check(diagnostics.examine(classifier(), loader, LOSS), "1 example: input (6,), target (1,)")

    def test_an_object_that_knows_how_to_move_itself(self):
        class Graph:
            moved_to = None

            def __init__(self, features, labels):
                self.features, self.labels = features, labels

            def to(self, device):
                moved = Graph(self.features.to(device), self.labels.to(device))
                moved.moved_to = device
                return moved

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = classifier()

            def forward(self, graph):
                assert graph.moved_to == torch.device("cpu")
                return {"loss": LOSS(self.layers(graph.features), graph.labels)}

        report = diagnostics.examine(Model(), [Graph(INPUTS, LABELS)])
        assert report.ok, str(report)
        assert stage(report, "backward")[1] == "4 of 4 trainable parameters get a gradient"

    def test_half_precision(self):
        model = classifier().to(torch.bfloat16)
        loader = DataLoader(TensorDataset(INPUTS.bfloat16(), LABELS), batch_size=8)
        report = diagnostics.examine(model, loader, LOSS)
        self.check(report, "8 examples: input (8, 6), target (8,)")
        assert stage(report, "forward and loss")[1].endswith("cross entropy")

    def test_a_model_with_hooks_runs_with_them(self):
        model = classifier()
        model[0].register_forward_hook(lambda module, inputs, output: output * 0)
        report = diagnostics.examine(model, LOADER, LOSS)
        assert "ignores-input" in [finding.rule for finding in report.findings]

    def test_a_compiled_model_is_looked_at_without_compiling(self):
        compiled = []
        model = torch.compile(classifier(), backend=lambda module, inputs: compiled.append(1) or module.forward)
        report = diagnostics.examine(model, LOADER, LOSS, torch.optim.Adam(model.parameters()))
        self.check(report, "8 examples: input (8, 6), target (8,)")
        assert compiled == []

    def test_a_list_of_batches(self):
        report = diagnostics.examine(classifier(), [(INPUTS[:8], torch.arange(8) % 3)], LOSS)
        self.check(report, "8 examples: input (8, 6), target (8,)")
