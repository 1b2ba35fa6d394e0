"""Reads rows of a running loop's DataLoaders, so that nothing else notices.

Rows of plain data are read in this process. Rows that code of the script's makes are read in a sandbox.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset

from diagnostics.collectors.isolation.harmless_code import Reading
from diagnostics.collectors.isolation.sandbox import SandboxEnded, can_sandbox, is_sandboxed, run_sandboxed
from diagnostics.collectors.pytorch.data import (
    dataset_facts,
    first_labels,
    is_shuffled,
    sample_loaded_rows,
    sampling_weights,
)
from diagnostics.collectors.pytorch.state import random_states_kept
from diagnostics.collectors.shared.dataset_rows import private, sample_rows
from diagnostics.collectors.shared.pipeline import CannotJudge, StageFailed, UsersCodeRaised
from diagnostics.collectors.shared.reread import ROWS, oriented_pairs
from diagnostics.collectors.shared.split_overlap import compared_rows, tokens_of_rows
from diagnostics.facts.data import DatasetFacts, DatasetLength, OrientedPairs
from diagnostics.facts.pipeline import Fact

SECONDS_COMPARING = 0.5  # for each of the two sets, while the script waits
SECONDS_SANDBOXED = 2.0  # for a process that reads rows: a dataset that opens a network stream may wait for it

Found = TypeVar("Found")


def training_rows(loader: DataLoader[Any]) -> DatasetFacts:
    """Read rows that a loader may give.

    Raises:
        CannotJudge: rows cannot be read unnoticed, or the dataset raised.
    """
    return _unnoticed(lambda: _read_rows(loader, is_shuffled(loader)), loader.dataset)


def image_pairs(loader: DataLoader[Any]) -> OrientedPairs | None:
    """Compare how images and their masks are flipped or rotated; None where code of the script's cannot be run."""
    dataset = loader.dataset
    length = None if is_plain(dataset) else _length(dataset)
    if not length or not hasattr(type(dataset), "__getitem__"):
        return None

    def read() -> OrientedPairs | None:
        with torch.no_grad(), torch._C.DisableTorchFunction(), random_states_kept(loader):
            return oriented_pairs(dataset.__getitem__, range(min(length, ROWS)), SECONDS_COMPARING)

    try:
        return _unnoticed(read, dataset)
    except CannotJudge:
        return None


def own_length(loader: DataLoader[Any]) -> DatasetLength | None:
    """Return the length of a dataset of the script's own class; None where asking for it could be noticed."""
    size = loader.batch_size
    if is_plain(loader.dataset) or size is None or size < 2:
        return None
    length = _length(loader.dataset)
    return None if length is None else DatasetLength(length, size)


def evaluation_facts(training: DataLoader[Any], evaluation: DataLoader[Any]) -> tuple[Fact, ...]:
    """Compare the rows that a model is evaluated on with its training rows.

    Returns:
        Nothing where reading rows has side effects, or where all are training rows: then the training accuracy is
        measured on purpose.
    """
    shuffled = is_shuffled(training)
    if shuffled is None:
        return ()

    def compare() -> tuple[Fact, ...]:
        with torch.no_grad(), torch._C.DisableTorchFunction(), random_states_kept(training, evaluation):
            sides = private(training.dataset), private(evaluation.dataset)
            compared = tuple(compared_rows(*sides, SECONDS_COMPARING))
            if not compared or compared[0].shared == compared[0].evaluation_rows:
                return ()
            are_cut = _follows(training.dataset, evaluation.dataset)
            tokens = tokens_of_rows(*sides, SECONDS_COMPARING, are_cut=are_cut)
            return (_rows(training, shuffled), *compared, *(() if tokens is None else (tokens,)))

    try:
        return _unnoticed(compare, training.dataset, evaluation.dataset)
    except CannotJudge:
        return ()


def _unnoticed(work: Callable[[], Found], *datasets: Any) -> Found:
    """Do work that reads rows, in a sandbox where code of the script's makes them.

    Raises:
        CannotJudge: there is no sandbox, or the rows could not be read in it.
    """
    if all(map(is_plain, datasets)):
        return work()
    if not can_sandbox():
        raise CannotJudge("reading rows now could change what the training reads")

    def guarded() -> Any:
        try:
            return work()
        except (CannotJudge, UsersCodeRaised) as reason:
            return str(reason)

    try:
        found = run_sandboxed(guarded, time.monotonic() + SECONDS_SANDBOXED)
    except SandboxEnded as how:
        raise CannotJudge(f"reading rows in a process of its own {how}") from None
    except OSError:
        raise CannotJudge("there was no memory for a process that reads rows") from None
    if isinstance(found, str):
        raise CannotJudge(found)
    return cast(Found, found)


def _read_rows(loader: DataLoader[Any], shuffled: bool | None) -> DatasetFacts:
    try:
        with random_states_kept(loader):
            return _rows(loader, shuffled)
    except (StageFailed, UsersCodeRaised) as reason:
        raise CannotJudge(f"rows could not be read: {reason}") from None


def _rows(loader: DataLoader[Any], shuffled: bool | None) -> DatasetFacts:
    seconds = SECONDS_COMPARING if is_sandboxed() else None
    if shuffled is None:  # a sampler of the user's own: which rows it gives is not asked, only what there is
        there = dataset_facts(sample_rows(loader.dataset, seconds=seconds), weighted_sampling=None)
        return dataclasses.replace(there, labels=None, token_lengths=None)
    weights = sampling_weights(loader)
    return dataset_facts(
        sample_loaded_rows(loader, seconds=seconds),
        weighted_sampling=weights is not None,
        sampling_weights=weights,
        shuffled=shuffled,
        first_batches=() if shuffled else first_labels(loader.dataset, loader.batch_size, seconds),
    )


def is_plain(dataset: Any) -> bool:
    """Whether a dataset is plain data: reading a row runs no user code and changes nothing."""
    if isinstance(dataset, Subset):
        return type(dataset) is Subset and is_plain(dataset.dataset)
    if isinstance(dataset, ConcatDataset):
        return type(dataset) is ConcatDataset and all(map(is_plain, dataset.datasets))
    if type(dataset).__module__ == "datasets.arrow_dataset":
        return bool(dataset.format["type"] != "custom")
    return type(dataset) in (list, tuple, Tensor, np.ndarray, TensorDataset)


def _follows(training: Any, evaluation: Any) -> bool:
    """Whether both are parts of the same data, the second right behind the first; no row is read."""
    if type(training) is Subset and type(evaluation) is Subset and training.dataset is evaluation.dataset:
        ours, theirs = (np.asarray(part.indices) for part in (training, evaluation))
        together = np.concatenate([ours, theirs])
        return bool(len(ours) and len(theirs) and (np.diff(together) == 1).all())
    if type(training) is TensorDataset and type(evaluation) is TensorDataset:
        one, other = training.tensors[0], evaluation.tensors[0]
        shared = one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr() and one.ndim == other.ndim
        behind = one.storage_offset() + len(one) * one.stride(0)
        return bool(shared and one.stride() == other.stride() and other.storage_offset() == behind)
    return False


def _length(dataset: Any) -> int | None:
    """Return the length of a dataset; None where asking for it could be noticed."""
    ask = getattr(type(dataset), "__len__", None)
    if not isinstance(ask, FunctionType) or Reading().objection(ask.__get__(dataset), "its length") is not None:
        return None
    try:
        length = ask(dataset)
    except Exception:  # of a code that was only read
        return None
    return length if type(length) is int else None
