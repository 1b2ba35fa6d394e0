"""Decides which code of a Trainer must not be called during its training, because of side effects."""

from __future__ import annotations

from typing import Any

from torch.utils.data import ConcatDataset, IterableDataset, Subset
from transformers import Trainer

from diagnostics.collectors.isolation.harmless_code import Reading, is_library, objection_to_module
from diagnostics.collectors.pytorch.loader_rows import is_plain
from diagnostics.collectors.pytorch.model import several_ranks

# Methods that an examination calls.
CALLED = (
    *("compute_loss", "compute_loss_context_manager", "_prepare_inputs", "_prepare_input", "_get_train_sampler"),
    *("_remove_unused_columns", "_set_signature_columns_if_needed", "_get_collator_with_removed_columns"),
)
# Methods that decide what a batch is. One of the user's own may read the data in a way of its own.
LOADING = ("get_train_dataloader", "_get_dataloader", "get_batch_samples", "training_step")
# Attributes of the Trainer that are replaced while its methods run.
REPLACED = frozenset({"model", "model_wrapped", "log"})


def is_overridden(trainer: Trainer, *methods: str) -> str | None:
    """Return the first of these methods that does not come with transformers."""
    for name in methods:
        method = vars(trainer).get(name, getattr(type(trainer), name, None))
        if getattr(method, "__module__", "").partition(".")[0] != "transformers":
            return name
    return None


def objection(trainer: Trainer) -> str | None:
    """Return why steps of a Trainer must not be tried on copies; None if that has no side effects."""
    kind = type(trainer).__name__
    if ranks := several_ranks():
        return f"{ranks} processes train together, and a call in one of them could wait for the others"
    if (own := is_overridden(trainer, *LOADING)) is not None:
        return f"{kind} has its own {own}"
    for name in CALLED:
        for function in _definitions(trainer, name):
            if (why := Reading(REPLACED).objection(function, f"{kind}.{name}")) is not None:
                return why
    parts = (
        (trainer.data_collator, "the collator"),
        (getattr(trainer, "compute_loss_func", None), "compute_loss_func"),
        (trainer.label_smoother, "the label smoother"),
    )
    for part, name in parts:
        if part is not None and (why := Reading().objection(part, name)) is not None:
            return why
    if trainer.optimizer is not None and not is_library(_inner(trainer.optimizer)):
        return f"the optimizer is a {type(_inner(trainer.optimizer)).__name__}, whose steps could be counted"
    return objection_to_rows(trainer.train_dataset) or objection_to_module(trainer.model)


def objection_to_rows(dataset: Any) -> str | None:
    """Return why rows of a dataset must not be read during training; None if that has no side effects."""
    kind = type(dataset).__name__
    if dataset is None or is_plain(dataset):
        return None
    if isinstance(dataset, Subset) and type(dataset) is Subset:
        return objection_to_rows(dataset.dataset)
    if isinstance(dataset, ConcatDataset) and type(dataset) is ConcatDataset:
        return next((why for part in dataset.datasets if (why := objection_to_rows(part)) is not None), None)
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
        return f"the dataset is a stream (a {kind}), and reading from it might take rows away"
    if type(dataset).__module__ == "datasets.arrow_dataset":
        transform = dataset.format["format_kwargs"].get("transform")
        return Reading().objection(transform, "the dataset's transform")
    for name in ("__getitem__", "__getitems__", "__len__"):
        method = getattr(dataset, name, None)
        if method is not None and (why := Reading().objection(method, f"{kind}.{name}")) is not None:
            return why
    return None


def objection_to_metric(trainer: Trainer) -> str | None:
    """Return why the metric must not be called; None if that has no side effects."""
    parts = (
        (trainer.compute_metrics, "compute_metrics"),
        (trainer.preprocess_logits_for_metrics, "preprocess_logits_for_metrics"),
    )
    for part, name in parts:
        if part is not None and (why := Reading().objection(part, name)) is not None:
            return why
    return None


def _definitions(trainer: Trainer, method: str) -> list[Any]:
    """List the definitions that a method runs and that do not come with transformers."""
    if method in vars(trainer):
        return [vars(trainer)[method]]
    found = [vars(base)[method] for base in type(trainer).__mro__ if method in vars(base)]
    return [
        function.__get__(trainer) for function in found if function.__module__.partition(".")[0] != "transformers"
    ]


def _inner(optimizer: Any) -> Any:
    """Return the optimizer that accelerate has wrapped."""
    return getattr(optimizer, "optimizer", optimizer)
