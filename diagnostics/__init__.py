"""Says what is wrong with a training run, where, on what evidence, and what to change.

report = diagnostics.examine(trainer)                             # Hugging Face Trainer, before train()
report = diagnostics.examine(model, loader, loss_fn, optimizer)   # plain PyTorch
report = diagnostics.examine(model, dataset)                      # Keras on TensorFlow, compiled
with diagnostics.watch(model, optimizer) as watch: ...            # plain PyTorch, while training
report = diagnostics.explain(exception)                           # after it blew up
search = diagnostics.largest_batch(step)                          # which batch fits, by trying
"""

from .batch_search import largest_batch
from .errors import DiagnosticsError, FindingsPresent, InvalidInput
from .examination import examine
from .explanation import explain
from .finding import Finding
from .report import Report
from .watching import Watch, watch

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
    "watch",
]
