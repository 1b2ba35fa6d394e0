"""Finds bugs in deep-learning training: what is wrong, where, the evidence, and what to change.

report = diagnostics.examine(trainer)                             # Hugging Face Trainer, before train()
report = diagnostics.examine(model, loader, loss_fn, optimizer)   # plain PyTorch
report = diagnostics.examine(model, dataset)                      # Keras on TensorFlow, compiled
report = diagnostics.examine(module, loader)                      # a LightningModule
with diagnostics.watch(model, optimizer) as watch: ...            # plain PyTorch, while training
trainer.add_callback(diagnostics.TrainerCallback())               # the same for a Trainer
model.fit(dataset, callbacks=[diagnostics.KerasCallback()])       # and for Keras
trainer = Trainer(callbacks=[diagnostics.LightningCallback()])    # and for Lightning
net = NeuralNet(..., callbacks=[diagnostics.SkorchCallback()])    # for skorch; FastaiCallback for fastai
x = diagnostics.probe(x, "after attention")                       # a tensor inside a watched forward
report = diagnostics.explain(exception)                           # after an exception
search = diagnostics.largest_batch(step)                          # the largest batch that fits
result = diagnostics.overfit(model, loader, loss_fn, optimizer)   # 1, 2, 5 examples and a batch, on copies
print(diagnostics.try_changes(model, loss_fn, loader, optimizer)) # would it learn if one thing were different?
print(diagnostics.show_batch(loader))                             # images with labels, tokens, plots
print(diagnostics.show_tokens(trainer))                           # which tokens are trained, ignored, padding
scores = diagnostics.baselines(loader)                            # what the model must beat
diagnostics.compare(fast, slow, inputs).assert_same()             # a vectorised function and its loops
diagnostics.LoaderChecks, diagnostics.GradientChecks              # for tests; also pytest fixtures
report = diagnostics.check_notebook("train.ipynb")                # what would change in a run from the top
%load_ext diagnostics                                             # in a notebook: %%diagnose above a cell
"""

# Imported first: it removes the working directory from the path, whose modules could replace those imported here.
from . import launch as launch

# isort: split
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api.baselines import baselines as baselines
    from .api.checks.compare import compare as compare
    from .api.checks.gradients import GradientChecks as GradientChecks
    from .api.checks.loaders import LoaderChecks as LoaderChecks
    from .api.examine import examine as examine
    from .api.explain import explain as explain
    from .api.keras_callback import KerasCallback as KerasCallback
    from .api.largest_batch import largest_batch as largest_batch
    from .api.notebook import check_notebook as check_notebook
    from .api.overfit import overfit as overfit
    from .api.show_batch import show_batch as show_batch
    from .api.show_tokens import show_tokens as show_tokens
    from .api.stacks.fastai import FastaiCallback as FastaiCallback
    from .api.stacks.lightning import LightningCallback as LightningCallback
    from .api.stacks.skorch import SkorchCallback as SkorchCallback
    from .api.trainer_callback import TrainerCallback as TrainerCallback
    from .api.try_changes import try_changes as try_changes
    from .api.watch import Watch as Watch
    from .api.watch import watch as watch
    from .engine.finding import Finding as Finding
    from .errors import CheckFailed as CheckFailed
    from .errors import DiagnosticsError as DiagnosticsError
    from .errors import FindingsPresent as FindingsPresent
    from .errors import InvalidInput as InvalidInput
    from .errors import TrainingStopped as TrainingStopped
    from .fixed_batch import FixedBatch as FixedBatch
    from .report.report import Report as Report
    from .tensor_probe import probe as probe

# Without those that need a framework or that only tests need: `from diagnostics import *` imports no framework.
__all__ = [
    "CheckFailed",
    "DiagnosticsError",
    "Finding",
    "FindingsPresent",
    "FixedBatch",
    "InvalidInput",
    "Report",
    "TrainingStopped",
    "Watch",
    "baselines",
    "check_notebook",
    "examine",
    "explain",
    "largest_batch",
    "overfit",
    "probe",
    "watch",
]

# Imported on first use, so that a command that needs none of them starts at once.
_HOMES = {
    "CheckFailed": "errors",
    "DiagnosticsError": "errors",
    "FastaiCallback": "api.stacks.fastai",
    "Finding": "engine.finding",
    "FindingsPresent": "errors",
    "FixedBatch": "fixed_batch",
    "GradientChecks": "api.checks.gradients",
    "InvalidInput": "errors",
    "KerasCallback": "api.keras_callback",
    "LightningCallback": "api.stacks.lightning",
    "LoaderChecks": "api.checks.loaders",
    "Report": "report.report",
    "SkorchCallback": "api.stacks.skorch",
    "TrainerCallback": "api.trainer_callback",
    "TrainingStopped": "errors",
    "Watch": "api.watch",
    "baselines": "api.baselines",
    "check_notebook": "api.notebook",
    "compare": "api.checks.compare",
    "examine": "api.examine",
    "explain": "api.explain",
    "largest_batch": "api.largest_batch",
    "overfit": "api.overfit",
    "probe": "tensor_probe",
    "show_batch": "api.show_batch",
    "show_tokens": "api.show_tokens",
    "try_changes": "api.try_changes",
    "watch": "api.watch",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


def load_ipython_extension(shell: Any) -> None:
    """Add the cell magic `%%diagnose`: what IPython calls at ``%load_ext diagnostics``."""
    from .run.notebook.ipython_extension import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Remove it: ``%unload_ext diagnostics``."""
    from .run.notebook.ipython_extension import unload

    unload(shell)
