"""What a training costs with each callback, against the same training without it; and with the look over time.

Keras, transformers and PyTorch are measured in the zoo's environment; Lightning, skorch and fastai in that of
`nox -s stacks`. What is not installed is left out, and said.

$ python tests/benchmarks/callbacks_cost.py
$ python tests/benchmarks/callbacks_cost.py SkorchCallback FastaiCallback
"""

import importlib.util
import logging
import os
import statistics
import sys
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import diagnostics

PAIRS = 9
# Of a whole training, start, end and report included. A step of these models takes a millisecond: of larger ones
# the share is less (see watch_overhead.py, whose bound for a transformer is 1.05).
BOUND = 1.30
OVER_TIME = 1.80  # with a fixed batch and histograms: eight looks at all weights in these 96 steps
ROWS, FEATURES, CLASSES, BATCH, EPOCHS = 2048, 64, 10, 64, 3


def rows():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, FEATURES, generator=generator)
    return x, (x @ torch.randn(FEATURES, CLASSES, generator=generator)).argmax(1)


def perceptron():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(FEATURES, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, CLASSES)
    )


def watch(**options):
    """Return a training of a plain loop, to be watched or not."""

    def train(watched):
        model, loader = perceptron(), DataLoader(TensorDataset(*rows()), BATCH)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        watch = diagnostics.watch(model, optimizer, **options) if watched else None
        for _ in range(EPOCHS):
            for x, y in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                if watch is not None:
                    watch.step(loss)
        if watch is not None:
            watch.close()
            watch.report()

    return train


def over_time():
    """Return the same, with a fixed batch and the layers' histograms over time."""
    x, y = rows()
    return watch(fixed_batch=diagnostics.FixedBatch(x[:16], y[:16], nn.functional.cross_entropy), histograms=True)


def trainer_callback():
    """Return a training by a Trainer of a small transformer."""
    import datasets
    import transformers

    config = transformers.DistilBertConfig(
        vocab_size=500, dim=128, hidden_dim=512, n_layers=2, n_heads=4, num_labels=3
    )
    ids = torch.randint(500, (512, 32), generator=torch.Generator().manual_seed(0))
    data = datasets.Dataset.from_dict({"input_ids": ids.tolist(), "labels": (ids[:, 0] % 3).tolist()})

    def train(watched):
        transformers.set_seed(0)
        with tempfile.TemporaryDirectory() as folder:
            arguments = transformers.TrainingArguments(
                folder, num_train_epochs=1, report_to=[], save_strategy="no", disable_tqdm=True, use_cpu=True
            )
            model = transformers.DistilBertForSequenceClassification(config)
            callbacks = [diagnostics.TrainerCallback(quiet=True)] if watched else []
            trainer = transformers.Trainer(model, arguments, train_dataset=data, callbacks=callbacks)
            trainer.remove_callback(transformers.PrinterCallback)
            trainer.train()
        for callback in callbacks:
            callback.report()

    return train


def keras_callback():
    """Return a training by Keras' fit."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras

    x, y = (part.numpy() for part in rows())

    def train(watched):
        keras.utils.set_random_seed(0)
        layers = [keras.layers.Dense(512, "relu"), keras.layers.Dense(512, "relu"), keras.layers.Dense(CLASSES)]
        model = keras.Sequential([keras.layers.Input((FEATURES,)), *layers])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.Adam(1e-3), loss, jit_compile=False)
        callbacks = [diagnostics.KerasCallback(quiet=True)] if watched else []
        model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0, callbacks=callbacks)
        for callback in callbacks:
            callback.report()

    return train


def lightning_callback():
    """Return a training by Lightning."""
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = perceptron()

        def training_step(self, batch, index):
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    options = dict.fromkeys(
        ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
    )

    def train(watched):
        callbacks = [diagnostics.LightningCallback(quiet=True)] if watched else []
        trainer = lightning.Trainer(max_epochs=EPOCHS, accelerator="cpu", callbacks=callbacks, **options)
        trainer.fit(Module(), DataLoader(TensorDataset(*rows()), BATCH))
        for callback in callbacks:
            callback.report()

    return train


def skorch_callback():
    """Return a training by skorch."""
    import skorch

    x, y = (part.numpy() for part in rows())

    def train(watched):
        callbacks = [diagnostics.SkorchCallback(quiet=True)] if watched else []
        settings = {"criterion": nn.CrossEntropyLoss, "max_epochs": EPOCHS, "batch_size": BATCH, "verbose": 0}
        net = skorch.NeuralNetClassifier(perceptron(), train_split=None, callbacks=callbacks, lr=0.1, **settings)
        net.fit(x, y)
        for callback in callbacks:
            callback.report()

    return train


def fastai_callback():
    """Return a training by a Learner of fastai."""
    from fastai.basics import CrossEntropyLossFlat, DataLoaders, Learner
    from fastai.callback.progress import ProgressCallback

    def train(watched):
        data = TensorDataset(*rows())
        callbacks = [diagnostics.FastaiCallback(quiet=True)] if watched else []
        loaders = DataLoaders.from_dsets(data, data, bs=BATCH, num_workers=0)
        learn = Learner(loaders, perceptron(), loss_func=CrossEntropyLossFlat(), cbs=callbacks)
        learn.remove_cb(ProgressCallback)
        with learn.no_logging():
            learn.fit(EPOCHS, 1e-3)
        for callback in callbacks:
            callback.report()

    return train


# What is measured: the packages that it needs, and what makes its training.
WAYS = {
    "watch": ((), watch),
    "fixed_batch and histograms": ((), over_time),
    "TrainerCallback": (("transformers", "datasets"), trainer_callback),
    "KerasCallback": (("keras", "tensorflow"), keras_callback),
    "LightningCallback": (("lightning",), lightning_callback),
    "SkorchCallback": (("skorch",), skorch_callback),
    "FastaiCallback": (("fastai",), fastai_callback),
}


def ratios(train):
    """Time both in turn, so that a busy machine slows both alike; return the ratio of each pair."""
    found = []
    for pair in range(PAIRS + 1):
        times = {}
        for watched in (True, False) if pair % 2 else (False, True):
            started = time.perf_counter()
            train(watched)
            times[watched] = time.perf_counter() - started
        if pair:  # the first is not measured: it loads what both need
            found.append(times[True] / times[False])
    return found


def main():
    torch.set_num_threads(1)
    held = True
    for name in sys.argv[1:] or WAYS:
        packages, make = WAYS[name]
        missing = [package for package in packages if importlib.util.find_spec(package) is None]
        if missing:
            print(f"{name}: not measured, {missing[0]} is not installed here")
            continue
        found = ratios(make())
        middle = statistics.median(found)
        bound = OVER_TIME if make is over_time else BOUND
        held = held and middle <= bound
        print(
            f"a training with {name} / without = {middle:.3f} (at most {bound}; {PAIRS} pairs, {min(found):.3f} "
            f"to {max(found):.3f})",
            flush=True,
        )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
