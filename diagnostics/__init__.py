"""Says what is wrong with a training run, where, on what evidence, and what to change.

report = diagnostics.examine(trainer)                             # Hugging Face Trainer, before train()
report = diagnostics.examine(model, loader, loss_fn, optimizer)   # plain PyTorch
report = diagnostics.examine(model, dataset)                      # Keras on TensorFlow, compiled
with diagnostics.watch(model, optimizer) as watch: ...            # plain PyTorch, while training
trainer.add_callback(diagnostics.TrainerCallback())               # the same for a Trainer
model.fit(dataset, callbacks=[diagnostics.KerasCallback()])       # and for Keras
x = diagnostics.probe(x, "after attention")                       # a tensor inside a forward that is watched
report = diagnostics.explain(exception)                           # after it blew up
search = diagnostics.largest_batch(step)                          # which batch fits, by trying
"""

# Before all else: it takes the working directory off the path, where others could be taken for what we import.
from . import launch as launch

# isort: split
import importlib
from typing import TYPE_CHECKING, Any

from .api.examine import examine
from .api.explain import explain
from .api.largest_batch import largest_batch
from .api.watch import Watch, watch
from .engine.finding import Finding
from .errors import DiagnosticsError, FindingsPresent, InvalidInput
from .report.report import Report
from .tensor_probe import probe

if TYPE_CHECKING:
    from .api.keras_callback import KerasCallback as KerasCallback
    from .api.trainer_callback import TrainerCallback as TrainerCallback

__all__ = [
    "DiagnosticsError",
    "Finding",
    "FindingsPresent",
    "InvalidInput",
    "Report",
    "Watch",
    "examine",
    "explain",
    "largest_batch",
    "probe",
    "watch",
]

# Each is a subclass of what its framework calls, and so is made where it is asked for: `import diagnostics`
# imports no framework. Not in `__all__`, for `from diagnostics import *` would ask for both.
_CALLBACKS = {"KerasCallback": "keras_callback", "TrainerCallback": "trainer_callback"}


def __getattr__(name: str) -> Any:
    if name not in _CALLBACKS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f".api.{_CALLBACKS[name]}", __name__), name)
    globals()[name] = found
    return found
