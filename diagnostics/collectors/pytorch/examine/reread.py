"""Reads a batch of a PyTorch loader twice, through copies of its dataset and collator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader

from diagnostics.collectors.pytorch.data import batch_indices, rows_at
from diagnostics.collectors.pytorch.state import random_states_kept
from diagnostics.collectors.shared.dataset_rows import is_iterable_only
from diagnostics.collectors.shared.reread import MOST_ROWS, Source, reread, seed_globals
from diagnostics.facts.data import RereadFacts


def reread_batch(make_loader: Callable[[], DataLoader[Any]], fresh_workers: bool = False) -> RereadFacts:
    """Read the rows of one batch, and collate them, twice.

    Args:
        make_loader: gives the user's loader, or one made of the user's dataset and collator.
        fresh_workers: whether training reads rows in processes that start over with each epoch.
    """
    try:
        loader = make_loader()
        dataset, together = loader.dataset, loader._auto_collation
        if is_iterable_only(dataset):
            return RereadFacts(unjudged="needs rows that can be read again, not a stream")
        with random_states_kept(loader):
            indices = batch_indices(loader)
            indices = indices[:MOST_ROWS] if together else indices
            if type(dataset) in (list, tuple):  # looking at its rows changes nothing, so only these are copied
                dataset = {index: dataset[index] for index in (indices if together else [indices])}
    except Exception as error:  # another stage meets it, and says so in full
        return RereadFacts(unjudged=f"needs rows to read; asking for them raised {type(error).__name__}")
    source = Source(
        dataset=dataset,
        collate=loader.collate_fn,
        read=lambda rows: rows_at(rows, indices, together),
        seed=seed_globals,
        fresh_workers=fresh_workers,
    )
    with random_states_kept(loader):
        return reread(source)
