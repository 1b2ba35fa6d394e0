"""Trainers of which every part counts its calls: what a second, unseen call would change."""

import collections
import itertools
import random

import numpy as np
import torch
import transformers
from datasets import Dataset as HubDataset
from torch import nn
from torch.utils.data import Dataset, IterableDataset
from transformers import Trainer, TrainingArguments, default_data_collator

ROWS, FEATURES, CLASSES = 48, 6, 3
SCRIPT = {"calls": 0, "sizes": []}  # what a script may keep at its top


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(16, CLASSES)

    def forward(self, features, labels=None):
        logits = self.head(self.body(features))
        if labels is None:
            return {"logits": logits}
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class CountingNetwork(Network):
    def __init__(self):
        super().__init__()
        self.calls, self.sizes = 0, []

    def forward(self, features, labels=None):
        self.calls += 1
        self.sizes.append(len(features))
        SCRIPT["calls"] += 1
        SCRIPT["sizes"].append(len(features))
        return super().forward(features, labels)


class CountingTrainer(Trainer):
    """Counts as TRL's SFTTrainer does: tokens in an int, metrics in lists by mode, and logs what it counted."""

    made = 0

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.tokens, self.metrics = 0, {"train": collections.defaultdict(list)}
        self.latest, self.numbers = collections.deque(maxlen=3), itertools.count()
        self.array, self.tensor = np.zeros(2), torch.zeros(1)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        CountingTrainer.made += 1
        self.tokens += inputs["features"].numel()
        self.metrics["train"]["norm"].append(inputs["features"].norm().item())
        self.latest.append(self.tokens)
        self.array[0] += 1
        self.tensor += next(self.numbers)
        loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
        return (loss, outputs) if return_outputs else loss

    def log(self, logs, *arguments, **options):
        for name, values in self.metrics["train"].items():
            logs[name] = sum(values) / max(len(values), 1)
        self.metrics["train"].clear()
        super().log({**logs, "tokens": self.tokens}, *arguments, **options)

    def counted(self):
        return (self.tokens, repr(self.metrics), list(self.latest), repr(self.numbers), self.array.tolist(),
                self.tensor.tolist(), CountingTrainer.made)  # fmt: skip


class CountingCollator:
    def __init__(self):
        self.calls, self.rows = 0, []

    def __call__(self, rows):
        self.calls += 1
        self.rows.append(len(rows))
        return default_data_collator(rows)


class Printing:
    """A collator that says that it was called."""

    def __call__(self, rows):
        print(f"collated {len(rows)}")
        return default_data_collator(rows)


class CountingCallback(transformers.TrainerCallback):
    def __init__(self):
        self.events = []

    def on_log(self, arguments, state, control, **_):
        self.events.append(("log", state.global_step))

    def on_step_end(self, arguments, state, control, **_):
        self.events.append(("step", state.global_step))


def points(seed=0):
    features = torch.randn(ROWS, FEATURES, generator=torch.Generator().manual_seed(seed))
    labels = features[:, :CLASSES].argmax(1)
    return [{"features": row, "labels": label} for row, label in zip(features, labels, strict=True)]


class CountingRows(Dataset):
    def __init__(self):
        self.data, self.reads, self.read = points(), 0, []

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        self.reads += 1
        self.read.append(index)
        return self.data[index]

    def counted(self):
        return self.reads, list(self.read)


class NoisyRows(Dataset):
    """Augments with a generator of its own, and one kept where nobody looks."""

    def __init__(self):
        self.data, self.random = points(), np.random.default_rng(3)
        self.draw = (lambda noise: lambda: noise.gauss(0.0, 0.1))(random.Random(4))

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        row = self.data[index]
        noise = torch.from_numpy(self.random.normal(scale=0.1, size=FEATURES)).float()
        return {**row, "features": row["features"] + noise + self.draw()}

    def counted(self):
        return self.random.bit_generator.state


class OneShot(IterableDataset):
    """A stream that ends: what is read beside the training is gone."""

    def __init__(self):
        self.stream = iter(points())

    def __iter__(self):
        return self.stream

    def counted(self):
        return self.stream.__length_hint__()


class Stream(IterableDataset):
    """A stream that counts its rows and starts over each time."""

    def __init__(self):
        self.rows = 0

    def __iter__(self):
        for row in points():
            self.rows += 1
            yield row

    def counted(self):
        return self.rows


class Transformed:
    """Rows of the Hub with a transform that counts."""

    def __new__(cls):
        plain = points()
        rows = HubDataset.from_dict(
            {name: [row[name].tolist() for row in plain] for name in ("features", "labels")}
        )
        SCRIPT["transformed"] = 0

        def transform(batch):
            SCRIPT["transformed"] += len(batch["labels"])
            return {name: torch.tensor(values) for name, values in batch.items()}

        return rows.with_transform(transform)


class CountingMetric:
    def __init__(self):
        self.calls = 0

    def __call__(self, evaluation):
        self.calls += 1
        return {"accuracy": float((evaluation.predictions.argmax(-1) == evaluation.label_ids).mean()),
                "calls": float(self.calls)}  # fmt: skip


def make(
    folder, *, kind=Trainer, model=Network, collator=None, callback=None, data=points, metric=None, **settings
):
    SCRIPT.update(calls=0, sizes=[])
    CountingTrainer.made = 0
    transformers.set_seed(3)
    chosen = {
        "max_steps": 6, "per_device_train_batch_size": 8, "learning_rate": 1e-2, "logging_steps": 2,
        "save_strategy": "no", "report_to": "none", "disable_tqdm": True, "use_cpu": True,
    } | settings  # fmt: skip
    return kind(
        model(), TrainingArguments(output_dir=str(folder), **chosen),
        train_dataset=data(), eval_dataset=points(seed=1), data_collator=None if collator is None else collator(),
        callbacks=None if callback is None else [callback()],
        compute_metrics=None if metric is None else metric(),
    )  # fmt: skip
