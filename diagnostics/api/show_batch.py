"""`show_batch`: shows a model's inputs as images with their labels, decoded tokens, or plots."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.errors import InvalidInput, what

from .show_tokens import batch_read

if TYPE_CHECKING:
    from diagnostics.report.batch import BatchPicture

TAKES = (
    "It takes a DataLoader or another series of batches, a Hugging Face Trainer, a tf.data.Dataset, a PyDataset, "
    "or one batch."
)


def show_batch(source: Any, *, rows: int = 8, tokenizer: Any = None) -> BatchPicture:
    """Show a batch as the model gets it: images with their labels, decoded tokens, plots of series and tables.

    Call it once before a long run. It reveals many bugs: labels of other rows, channels in the wrong order, pixels
    from 0 to 255 instead of 0 to 1, texts of unknown tokens, truncated answers.

        print(diagnostics.show_batch(loader))
        diagnostics.show_batch(loader).save("batch.html")
        diagnostics.show_batch(trainer, rows=4)
        diagnostics.show_batch((images, labels))

    The dtype and shape of each part decide how it is shown, and the caption says what was assumed. A normalisation
    is undone if the dataset's transforms contain it: torchvision's `Normalize`, Keras' `Rescaling` and
    `Normalization`. Images are downsampled to at most 64 pixels a side.

    Nothing is changed: reading the batch does not advance your iterators, and all random states are restored. No
    model is called, and the loader's own worker processes are not started.

    Args:
        source: a `DataLoader` or another iterable of batches; a Trainer from transformers or TRL; a
            `tf.data.Dataset` of batches; a `keras.utils.PyDataset`; or one batch: a mapping, a tuple ``(inputs,
            targets)``, or a tensor or array of shape (rows, ...).
        rows: how many to show. Counts and ranges are those of the whole batch.
        tokenizer: decodes the tokens. By default, the tokenizer found in the collator, the dataset or the script;
            without one, ids are shown.

    Returns:
        A `BatchPicture`: text when printed, HTML in a notebook, `save("batch.html")`. Printing a batch of images
        writes them to a new PNG in the folder for temporary files, and shows its path.

    Raises:
        InvalidInput: there is no batch to show, or reading one would take rows away from training.
    """
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise InvalidInput(f"show_batch(rows={rows!r}): expected a whole number of at least 1.")
    if tokenizer is not None and not callable(getattr(tokenizer, "decode", None)):
        raise InvalidInput(f"show_batch() was given {what(tokenizer)} as tokenizer, which has no decode().")
    if source is None or isinstance(source, str | bytes | type | int | float):
        raise InvalidInput(f"show_batch() was given {what(source)}. {TAKES}")
    with own_run(), _global_states_kept():  # to import rich draws from Python's
        from diagnostics.collectors.shared.batch_view import batch_view, split_parts
        from diagnostics.collectors.shared.vocabulary import scalings_in, tokenizer_in
        from diagnostics.report.batch import BatchPicture

        batch, found, causal, roots = _batch(source, rows)
        inputs, targets = split_parts(batch)
        if not inputs:
            raise InvalidInput(f"show_batch() found nothing to show in {what(source)}. {TAKES}")
        tokenizer = tokenizer or found or tokenizer_in(*roots)
        title = "a batch" if batch is source else f"a batch of {what(source)}"
        view = batch_view(
            title, inputs, targets, tokenizer=tokenizer, causal=causal, scalings=scalings_in(*roots), rows=rows
        )
        return BatchPicture((view,))


def _batch(source: Any, rows: int) -> tuple[Any, Any, bool | None, tuple[Any, ...]]:
    """Return a batch, a tokenizer, whether the model shifts the labels, and the objects that made the batch."""
    if _is_batch(source):
        return source, None, None, ()
    with batch_read("show_batch", source):
        return _read(source, rows)


def _is_batch(source: Any) -> bool:
    """Whether this is one batch: a mapping, an array, or a tuple or list of arrays and mappings of them."""
    if isinstance(source, Mapping) or hasattr(source, "shape"):
        return True
    parts = source if isinstance(source, tuple | list) else ()
    return bool(parts) and all(hasattr(part, "shape") or isinstance(part, Mapping) for part in parts)


def _read(source: Any, rows: int) -> tuple[Any, Any, bool | None, tuple[Any, ...]]:
    trainers, torch, keras = (sys.modules.get(name) for name in ("transformers.trainer", "torch", "keras"))
    if trainers is not None and isinstance(source, getattr(trainers, "Trainer", ())):
        from diagnostics.collectors.transformers.first_rows import trainer_batch

        trainer: Any = source
        return (*trainer_batch(trainer, rows), (trainer.data_collator, trainer.train_dataset))
    if keras is not None and _is_of_keras(source, keras):
        from diagnostics.collectors.keras.data import KerasData
        from diagnostics.collectors.keras.state import global_states_kept

        with global_states_kept(source):
            return _first(KerasData(source).batches()), None, None, (source,)
    if torch is not None and isinstance(source, torch.nn.Module):
        raise InvalidInput(f"show_batch() was given the model {type(source).__name__}. {TAKES}")
    if torch is not None:
        from diagnostics.collectors.pytorch.data import collate_batch, first_batch, not_batches
        from diagnostics.collectors.pytorch.state import random_states_kept

        if (why := not_batches(source)) is not None:
            raise InvalidInput(f"show_batch() was given {what(source)}{why}")
        if not isinstance(source, torch.utils.data.DataLoader):
            return first_batch(source, rows), None, None, (source,)
        with random_states_kept(source), torch.no_grad():
            return collate_batch(source), None, None, (source.collate_fn, source.dataset)
    if not hasattr(source, "__iter__"):
        raise InvalidInput(f"show_batch() was given {what(source)}. {TAKES}")
    from diagnostics.collectors.shared.dataset_rows import fresh_iterator

    return _first(fresh_iterator(source, "data")), None, None, (source,)


def _is_of_keras(source: Any, keras: Any) -> bool:
    tensorflow: Any = sys.modules.get("tensorflow")
    return tensorflow is not None and isinstance(source, (keras.utils.PyDataset, tensorflow.data.Dataset))


def _first(batches: Iterator[Any]) -> Any:
    from diagnostics.collectors.shared.pipeline import StageFailed

    for batch in batches:
        return batch
    raise StageFailed("the data is empty: iterating it yielded nothing")


@contextmanager
def _global_states_kept() -> Iterator[None]:
    """Restore the generators of Python and NumPy on leaving."""
    import numpy as np

    python, numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
