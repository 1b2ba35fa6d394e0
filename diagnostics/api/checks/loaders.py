"""`LoaderChecks`: checks of a dataset, its transforms, its collator and its loader, for tests."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

from diagnostics.collectors.checks.calls import all_random_states_kept, seed_all
from diagnostics.collectors.checks.collated import RowMismatch, batch_mismatch, batches_of, same_rows
from diagnostics.collectors.checks.items import mismatch, place_words, read_items
from diagnostics.collectors.isolation.rng import generators_within
from diagnostics.collectors.shared.reread import deep_copy
from diagnostics.errors import InvalidInput, ends_at_the_caller, typed_message, what
from diagnostics.facts.checks import WorkerGenerator
from diagnostics.text.join import count_of, listed

from .items import ITEMS, ItemChecks, called_with, check_callables, check_no_graph
from .result import CheckResult

__tracebackhide__ = ends_at_the_caller

BATCHES = 4  # of which the order is compared
SHOWN_DIGITS = 4


class LoaderChecks(ItemChecks):
    """Checks of a dataset and its loader, for tests; also available as the fixture `loader_checks`.

        def test_the_loader(loader_checks):
            loader_checks.same_item_twice(train_set)
            loader_checks.no_augmentation(test_set)
            loader_checks.round_trip(images, encode=to_tensor, decode=to_image)
            loader_checks.batch_equals_items(train_loader)
            loader_checks.distinct_workers(train_loader)
            loader_checks.reproducible_order(lambda: make_loader(train_set))

    A check that passes returns what it measured and prints nothing; a check that fails raises `CheckFailed`, an
    AssertionError, with the position of the first difference. Random states do not change. A check reads a copy of
    the dataset, unless it is too large (over 256 MiB) or cannot be copied.
    """

    def distinct_workers(self, loader: Any, *, workers: int | None = None) -> CheckResult:
        """Start the workers of a PyTorch loader, and check that they draw different random numbers.

        Args:
            loader: a `torch.utils.data.DataLoader`; its own workers and its position do not change.
            workers: how many to start; None for the loader's number, but at least 2.

        Raises:
            CheckFailed: a generator that items are made with starts in the same state in two workers, or every
                item is made with the same random numbers.
            InvalidInput: this is not a DataLoader, or a worker fails.
        """
        name = "distinct workers"
        _check_loader(loader, "distinct_workers")
        if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 2):
            raise InvalidInput(f"distinct_workers(workers={workers!r}): expected a whole number, at least 2.")
        from diagnostics.collectors.pytorch.checks.workers import worker_generators

        number = workers or max(2, loader.num_workers)
        with all_random_states_kept(loader):
            try:
                found = worker_generators(loader, number)
            except Exception as error:
                raise InvalidInput(
                    f"distinct_workers() could not read an item in {number} workers: {typed_message(error)}. The "
                    "loader has to work with num_workers=2 first."
                ) from error
        used = [one for one in found if one.drawn]
        names = list(dict.fromkeys(one.name for one in used))
        for generator in names:
            here = [one for one in used if one.name == generator]
            if all(one.seeded_alike for one in here):
                return self._failed(
                    name,
                    f"reading an item seeds {generator} with the same number each time: every item is made with "
                    f"the same random numbers, the first of them {here[0].first:.{SHOWN_DIGITS}f} in each worker.",
                    "seed in the worker_init_fn, or from the index of the item, not with a constant in "
                    "__getitem__",
                    rule="repeated-worker-randomness",
                    numbers={"generator": generator, "workers": number},
                )
            free = [one for one in here if not one.seeded_by_item]
            if (alike := _alike(free)) is not None:
                return self._failed(
                    name,
                    f"workers {listed(one.worker for one in alike)} of {number} begin with {generator} in the "
                    f"same state; the first number that each draws is {alike[0].first:.{SHOWN_DIGITS}f}. So they "
                    "make the same random augmentations, and there are fewer of them than it seems.",
                    "DataLoader(..., worker_init_fn=reseed), with a reseed that sets "
                    "get_worker_info().dataset.rng = np.random.default_rng(get_worker_info().seed); do not seed "
                    "all workers with one number",
                    rule="repeated-worker-randomness",
                    numbers={"generator": generator, "workers": number, "first": alike[0].first},
                )
        seen = f"items are made with {listed(names)}" if names else "reading items draws no random numbers"
        return self._passed(name, f"{number} workers, {seen}", workers=number, generators=names)

    def reproducible_order(
        self,
        make_loader: Any,
        *,
        seed: Callable[[int], object] | None = None,
        batches: int = BATCHES,
        may_change: Collection[str] = (),
    ) -> CheckResult:
        """Check that the same seed gives the same batches in the same order.

        Args:
            make_loader: a function that makes the loader, called twice; or a loader, of which a copy is read
                twice.
            seed: your function that seeds everything; None to seed Python, NumPy and the frameworks in use.
            batches: number of batches to compare.
            may_change: keys that may differ.

        Raises:
            CheckFailed: a batch differs; the message says whether in its order or in its values.
            InvalidInput: this does not make a loader.
        """
        name = "reproducible order"
        make = make_loader if callable(make_loader) and not hasattr(type(make_loader), "__iter__") else None
        if make is None:
            check_no_graph(make_loader, "reproducible_order")
        with all_random_states_kept(make_loader):
            states = [(own, own.state()) for own in generators_within(make_loader)]
            readings = []
            for _ in range(2):
                for own, state in states:
                    own.restore(state)
                (seed or seed_all)(0)
                loader = copy.copy(make_loader) if make is None else make()
                readings.append(batches_of(loader, batches))
        first, second = readings
        for number, (one, other) in enumerate(zip(first, second, strict=False)):
            if (found := mismatch(one, other, may_change)) is None:
                continue
            moved = same_rows(first, second)
            what_differs = (
                "The rows are the same in another order: the sampler, or the list of files, is not seeded."
                if moved
                else "The values differ: the items, or which of them are read, depend on more than the seed."
            )
            return self._failed(
                name,
                f"batch {number} differs under the same seed: {place_words(found)}. {what_differs}",
                "DataLoader(shuffle=True, generator=torch.Generator().manual_seed(0)); draw from generators that "
                "are seeded, sort os.listdir and sets",
                rule="unseeded-randomness",
                numbers={"batch": number, "same_rows": moved},
            )
        if len(first) != len(second):
            return self._failed(
                name,
                f"the loader gave {count_of(len(first), 'batch', 'batches')}, then {len(second)}.",
                "pass a function that makes the loader, and let it re-create everything",
                rule="unseeded-randomness",
            )
        return self._passed(
            name, f"{count_of(len(first), 'batch', 'batches')}, twice the same", batches=len(first)
        )

    def batch_equals_items(
        self, loader: Any, items: Sequence[Any] | None = None, *, may_change: Collection[str] = ()
    ) -> CheckResult:
        """Check that each row of a batch equals the item that it was made from, except for padding at one end.

        Args:
            loader: a `torch.utils.data.DataLoader`, whose collator is called with the items of its first batch; or
                a function that makes a batch from `items`.
            items: the items for such a function.
            may_change: keys that the collator changes on purpose, such as masked tokens.

        Raises:
            CheckFailed: a row is a different item, is cut off, or is padded with several values; or its mask is
                wrong.
            InvalidInput: an argument is wrong, or batch and items have nothing in common.
        """
        name = "batch equals items"
        collate = loader
        if items is None:
            _check_loader(loader, "batch_equals_items")
            from diagnostics.collectors.pytorch.data import batch_indices, rows_at
            from diagnostics.collectors.shared.dataset_rows import is_iterable_only

            if not loader._auto_collation:
                raise InvalidInput(
                    "batch_equals_items() was given a loader that collates nothing: batch_size=None."
                )
            collate = loader.collate_fn
        check_callables("batch_equals_items", collate=collate)
        with all_random_states_kept(loader):
            seed_all(0)
            if items is not None:
                rows = list(items)
            elif is_iterable_only(loader.dataset):
                rows = read_items(deep_copy(loader.dataset), None, min(ITEMS, loader.batch_size or ITEMS))
            else:
                rows = rows_at(deep_copy(loader.dataset), batch_indices(loader)[:ITEMS])
            if not rows:
                raise InvalidInput("batch_equals_items() was given no items: there is no batch to make of them.")
            batch = called_with("the collator", collate, copy.deepcopy(rows), "batch_equals_items")
        found = batch_mismatch(batch, rows, may_change)
        if isinstance(found, str):
            raise InvalidInput(
                f"batch_equals_items() cannot compare the batch with its items: {found}. Name keys that the "
                "collator drops or makes again in may_change, or let it keep the names of the items."
            )
        if isinstance(found, RowMismatch):
            return self._failed(name, _row_message(found), *_row_fix(found))
        return self._passed(name, f"{count_of(len(rows), 'row')} are their items", rows=len(rows))


def _row_message(found: RowMismatch) -> str:
    part = f"batch[{found.part}]" if found.part.isdigit() else f"{found.part!r} of the batch"
    return f"row {found.row} of {part} {found.reason}. What the model is trained on is not what the dataset holds."


def _row_fix(found: RowMismatch) -> tuple[str, str | None]:
    if found.order:
        return "sort all parts of a batch together, by one list of indices", None
    if "cut off" in found.reason:
        return "pad to the longest item of the batch, or raise max_length", "truncated-inputs"
    if "marks" in found.reason:
        return (
            "make the mask of the lengths before padding, or let tokenizer.pad make it",
            "attention-mask-missing",
        )
    return "stack or pad the items and change nothing else; name what has to differ in may_change", None


def _alike(found: Sequence[WorkerGenerator]) -> list[WorkerGenerator] | None:
    """Return the workers that begin, and go on, in the same state, if there are two."""
    for one in found:
        same = [other for other in found if (other.start, other.end) == (one.start, one.end)]
        if len({other.worker for other in same}) > 1:
            return same
    return None


def _check_loader(loader: Any, check: str) -> None:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(loader, torch.utils.data.DataLoader):
        also = ", or a function and its items" if check == "batch_equals_items" else ""
        raise InvalidInput(f"{check}() was given {what(loader)}. It takes a torch.utils.data.DataLoader{also}.")
