"""Keeps a few rows of a batch for display, in bounded size. Dtype and shape decide how a part is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from diagnostics.errors import InvalidInput
from diagnostics.facts.array import Array
from diagnostics.facts.batch_view import BatchPart, BatchView, TokenFacts
from diagnostics.facts.inputs import Vocabulary
from diagnostics.facts.pipeline import BatchFacts
from diagnostics.text.join import count_of

from .arrays import LABEL_NAMES, describe, fields, flat, target_name, to_array
from .dataset_rows import text_by_column
from .input_sample import channel_axis
from .tokens import token_facts
from .vocabulary import (
    Scaling,
    first_words,
    has_several_meanings,
    name_of_tokenizer,
    scalings_in,
    size_of_vocabulary,
    text_of_token,
    tokenizer_in,
)

ROWS = 8
PARTS = 6  # inputs or targets
SIDE = 64  # pixels of an image's longer side
STEPS, FEATURES, COLUMNS = 128, 4, 32  # of a series, of a series, of a table
TOKENS = 512  # of a row
LEAST_TOKENS = 4  # numbers of a row that are taken for token ids
LEAST_SIDE = 8  # of an image without an axis of channels
CHANNELS = (1, 3, 4)
CLASSES = 1_000  # different whole numbers of a target that are taken for classes
CHARACTERS = 300  # of a text
KEPT_ROWS, KEPT_BYTES = 64, 2**20  # of a batch, until the end of the run
WHOLE = 5_000_000  # numbers; of a larger part only the rows shown are read
BYTE = 255.0
SLACK = 0.05  # of the range, past its ends: what interpolation adds
ONLY_SHOWN = "range and counts are those of the rows shown"
TOKEN_NAMES = ("input_ids", "token_ids")
MASKS = ("attention_mask", "padding_mask")
BESIDE_TOKENS = (*MASKS, "token_type_ids", "segment_ids", "position_ids", "special_tokens_mask")


def batch_view(
    title: str,
    inputs: Mapping[str, Any],
    targets: Mapping[str, Any],
    *,
    tokenizer: Any = None,
    causal: bool | None = None,
    scalings: Sequence[Scaling] = (),
    rows: int = ROWS,
    size: int | None = None,
) -> BatchView:
    """Return what there is to show of a batch.

    Args:
        title: where it is from.
        inputs: tensors, arrays or lists of texts (size, ...) by name.
        targets: likewise.
        tokenizer: decodes token ids; None to show ids.
        causal: whether the model shifts the labels itself; None if that is not known.
        scalings: steps to undo for images, in the order in which they were applied.
        rows: to show.
        size: rows of the batch, where only some of them are given.
    """
    parts = {name: value for name, value in inputs.items() if value is not None}
    wanted = {name: value for name, value in targets.items() if value is not None}
    tokens, shown = _tokens(parts, wanted, tokenizer, causal, rows), list[BatchPart]()
    if tokens is not None:
        name, facts = tokens
        length = max((len(row.tokens) for row in facts.rows), default=0)
        given = to_array(parts[name])
        read_as = f"token ids, {_times(_shape(parts[name]) or (len(facts.rows), length))}"
        notes = () if tokenizer is not None else ("no tokenizer was found: ids are shown",)
        dtype = "" if given is None else str(given.dtype)
        shown.append(BatchPart(name, "tokens", read_as, dtype, notes=notes, tokens=facts))
        of_tokens = facts.labels not in ("none", "of the row")
        wanted = {} if of_tokens and len(wanted) == 1 else wanted
        parts = {other: value for other, value in parts.items() if other not in (name, *BESIDE_TOKENS)}
    if size is None:
        lengths = [shape[0] for value in (*parts.values(), *wanted.values()) if (shape := _shape(value))]
        size = lengths[0] if lengths else None if tokens is None else (_shape(inputs[tokens[0]]) or (None,))[0]
    kept = [_part(name, value, rows, scalings) for name, value in list(parts.items())[:PARTS]]
    aims = [_part(name, value, rows, (), target=True) for name, value in list(wanted.items())[:PARTS]]
    lengths = [shape[0] for part in (*parts.values(), *wanted.values()) if (shape := _shape(part))]
    if size is not None and lengths and max(lengths) < size:
        kept, aims = ([replace(part, notes=(*part.notes, ONLY_SHOWN)) for part in group] for group in (kept, aims))
    left_out = max(0, len(parts) - PARTS) + max(0, len(wanted) - PARTS)
    return BatchView(title, size, min(rows, size or rows), (*shown, *kept), tuple(aims), left_out)


def _tokens(
    inputs: Mapping[str, Any], targets: Mapping[str, Any], tokenizer: Any, causal: bool | None, rows: int
) -> tuple[str, TokenFacts] | None:
    """Return the name of the token ids, and the tokens of the first rows; None if there are no ids."""
    name = _name_of_tokens(inputs)
    if name is None:
        return None
    batch = {"input_ids": _first(inputs[name], rows, TOKENS)}
    mask = next((inputs[mask] for mask in MASKS if mask in inputs), None)
    if mask is not None and len(_shape(mask)) <= 2:
        batch["attention_mask"] = _first(mask, rows, TOKENS)
    if "position_ids" in inputs:
        batch["position_ids"] = _first(inputs["position_ids"], rows, TOKENS)
    if len(targets) == 1:
        (target,) = targets.values()
        batch["labels"] = _first(target, rows, TOKENS)
    for tried in (batch, {"input_ids": batch["input_ids"]}):
        try:
            return name, token_facts(tried, tokenizer, causal)
        except InvalidInput:  # parts that do not belong together
            continue
    return None


def _name_of_tokens(inputs: Mapping[str, Any]) -> str | None:
    """Return which input holds token ids: by its name, or the only one that looks like it."""
    named = next((name for name in TOKEN_NAMES if name in inputs), None)
    others = [] if named is not None else [name for name, value in inputs.items() if _may_be_tokens(name, value)]
    return others[0] if len(others) == 1 else named


def _may_be_tokens(name: str, value: Any) -> bool:
    shape = _shape(value)
    if name in BESIDE_TOKENS or len(shape) != 2 or shape[1] < LEAST_TOKENS:
        return False
    array = to_array(_first(value, 1, TOKENS))
    return array is not None and array.dtype.kind in "iu" and array.dtype.itemsize >= 4


def _first(value: Any, rows: int, columns: int) -> Any:
    """Cut a batch to its first rows, and these to their first numbers."""
    if isinstance(value, list | tuple):
        return [row[:columns] if isinstance(row, list | tuple) else row for row in value[:rows]]
    shape = _shape(value)
    if not shape:
        return value
    return value[:rows, :columns] if len(shape) > 1 else value[:rows]


def _shape(value: Any) -> tuple[int, ...]:
    if isinstance(value, list | tuple):
        array = to_array(value)
        return (len(value),) if array is None else array.shape
    try:
        return tuple(int(length) for length in value.shape)
    except Exception:  # not an array, or one of unknown lengths
        return ()


def _part(name: str, value: Any, rows: int, scalings: Sequence[Scaling], target: bool = False) -> BatchPart:
    """Return one part, as what its dtype and shape make it look like."""
    shape, notes = _shape(value), list[str]()
    texts = _texts(value, rows)
    if texts:
        return BatchPart(name, "texts", count_of(len(value), "text"), "str", texts=texts)
    if shape and not isinstance(value, list | tuple) and int(np.prod(shape)) > WHOLE:
        value = value[:rows]
        notes.append(f"the range is that of the first {count_of(min(rows, shape[0]), 'row')}")
    array = to_array(value)
    if array is None or not array.ndim or not array.size:
        return BatchPart(name, "other", describe(value), str(getattr(value, "dtype", "")))
    finite = np.isfinite(array)
    if not finite.all():
        notes.append(f"{int((~finite).sum()):,} of {array.size:,} numbers are not finite")
    low, high = (float(array[finite].min()), float(array[finite].max())) if finite.any() else (None, None)
    read = BatchPart(name, "other", f"an array of shape {_times(shape)}", str(array.dtype), low=low, high=high)
    if target and (labels := _classes(array)) is not None:
        classes, read_as = labels
        counts = tuple(Counter(classes.tolist()).most_common())
        read = replace(read, kind="classes", read_as=read_as, values=classes[:rows], counts=counts)
    elif array.ndim == 1 or array.shape[1:] == (1,):
        values = array[:rows].reshape(-1).astype(np.float32)
        read = replace(read, kind="numbers", read_as=count_of(len(array), "number"), values=values)
    elif array.ndim == 2:
        if array.shape[1] > COLUMNS:
            notes.append(f"the first {COLUMNS} features are shown")
        read_as = f"a table, {count_of(shape[0], 'row')} x {count_of(shape[1], 'feature')}"
        read = replace(read, kind="table", read_as=read_as, values=array[:rows, :COLUMNS].astype(np.float32))
    elif (layout := _layout(array, target)) is not None:
        read = _pictures(replace(read, read_as=_times(shape[1:])), array, rows, layout, scalings, notes, target)
    elif array.ndim == 3:
        read = _series(read, array, rows, notes)
    return replace(read, notes=tuple(notes))


def _series(read: BatchPart, array: Array, rows: int, notes: list[str]) -> BatchPart:
    axis = channel_axis(array.shape)
    series = np.moveaxis(array[:rows], axis, 2)
    every = -(-series.shape[1] // STEPS)
    if every > 1:
        notes.append(f"1 of {every} steps is shown")
    if series.shape[2] > FEATURES:
        notes.append(f"the first {FEATURES} features are shown")
    order = "steps x features" if axis == 2 else "features x steps"
    read_as = f"{len(array):,} series, {_times(array.shape[1:])} ({order})"
    values = series[:, ::every, :FEATURES].astype(np.float32)
    return replace(read, kind="series", read_as=read_as, values=values)


def _texts(value: Any, rows: int) -> tuple[str, ...]:
    """Return the first rows as texts, if they are: a list of them, or an array or tensor of strings."""
    if not isinstance(value, list | tuple):
        kind = str(getattr(value, "dtype", ""))
        if "string" not in kind and not kind.startswith(("<U", "|S", "object")):
            return ()
        value = np.asarray(value[:rows]).reshape(-1).tolist() if _shape(value) else []
    first = [one.decode("utf-8", "replace") if isinstance(one, bytes) else one for one in list(value)[:rows]]
    if not first or not all(isinstance(one, str) for one in first):
        return ()
    return tuple(one if len(one) <= CHARACTERS else f"{one[:CHARACTERS]}…" for one in first)


def _classes(array: Array) -> tuple[Array, str] | None:
    """Return the class of each row (size,), and how it was read; None for another target."""
    rows = len(array)
    if array.ndim == 1 or array.shape[1:] == (1,):
        flat = array.reshape(-1)
        whole = array.dtype.kind in "biu" or bool(np.isin(flat, (0, 1)).all())
        if whole and len(np.unique(flat)) <= CLASSES:
            return flat.astype(np.int64), f"class ids of {count_of(rows, 'row')}"
        return None
    if array.ndim == 2 and bool(np.isin(array, (0, 1)).all()) and bool((array.sum(axis=1) == 1).all()):
        return array.argmax(axis=1), f"one-hot classes, {_times(array.shape)}"
    return None


def _layout(array: Array, target: bool) -> str | None:
    """Say where the channels of images are: ``first``, ``last`` or ``none``; None for what is no image."""
    shape = array.shape
    if array.ndim == 3:
        near = max(shape[1:]) <= 4 * min(shape[1:]) and min(shape[1:]) >= LEAST_SIDE
        grey = array.dtype.kind in "bu" or shape[1] == shape[2] or (target and array.dtype.kind == "i")
        return "none" if near and grey else None
    if array.ndim != 4:
        return None
    first, last = shape[1] in CHANNELS, shape[3] in CHANNELS
    if first and last:
        return "last" if abs(shape[1] - shape[2]) < abs(shape[2] - shape[3]) else "first"
    if first or last:
        return "first" if first else "last"
    return "last" if shape[3] < min(shape[1:3]) else "first"


def _pictures(
    read: BatchPart,
    array: Array,
    rows: int,
    layout: str,
    scalings: Sequence[Scaling],
    notes: list[str],
    target: bool,
) -> BatchPart:
    """Return images, or masks of classes, as bytes (rows, height, width, 1 or 3)."""
    part = array[:rows]
    pixels = np.moveaxis(part, 1, 3) if layout == "first" else part[..., None] if layout == "none" else part
    channels, where = pixels.shape[3], "" if layout == "none" else f", channels {layout}"
    every = -(-max(pixels.shape[1:3]) // SIDE)
    if every > 1:
        notes.append(f"downsampled to {_times(pixels[0, ::every, ::every, 0].shape)}")
        pixels = pixels[:, ::every, ::every]
    whole = pixels.dtype.kind in "biu" or bool(np.isin(pixels, (0, 1)).all())
    if target and channels == 1 and whole:
        values = np.mod(pixels, 256).astype(np.uint8)
        return replace(read, kind="masks", read_as=f"{len(array):,} masks, {read.read_as}{where}", values=values)
    pixels = _in_bytes(pixels.astype(np.float32), scalings, read, notes)
    if channels not in (1, 3):
        notes.append("the first 3 channels are shown" if channels == 4 else "the first channel is shown")
    values = pixels[..., : 3 if channels in (3, 4) else 1]
    return replace(read, kind="images", read_as=f"{len(array):,} images, {read.read_as}{where}", values=values)


def _in_bytes(pixels: Array, scalings: Sequence[Scaling], read: BatchPart, notes: list[str]) -> Array:
    """Return images as bytes: 0 to 1 and 0 to 255 as they are, after a known normalisation has been undone."""
    low, high, undone = read.low or 0.0, read.high or 0.0, False
    for scaling in reversed(scalings):
        if len(scaling.shift) in (1, pixels.shape[3]) and len(scaling.scale) in (1, pixels.shape[3]):
            pixels, undone = pixels * scaling.scale + scaling.shift, True
            notes.append(f"undone for display: {scaling.name}")
    pixels = np.nan_to_num(pixels)
    if undone:
        low, high = float(pixels.min()), float(pixels.max())
        slack = SLACK if high <= 1 + SLACK else SLACK * BYTE
        low, high = (0.0 if low >= -slack else low), (high / (1 + SLACK) if high > 1 else high)
    if low < 0 or high > BYTE:
        low, high = float(pixels.min()), float(pixels.max())
        pixels = (pixels - low) / ((high - low) or 1.0) * BYTE
        shown = f"shown from {low:.3g} (black) to {high:.3g} (white)"
        notes.append(shown if undone else f"{shown}: no normalisation is known")
    elif high <= 1:
        pixels = pixels * BYTE
    return np.asarray(np.clip(np.round(pixels), 0, BYTE).astype(np.uint8))


def _times(shape: Sequence[int]) -> str:
    return " x ".join(f"{length:,}" for length in shape)


def examined_batch(
    batch: BatchFacts, sources: tuple[Any, ...], shown: bool
) -> tuple[tuple[BatchView, ...], BatchFacts]:
    """Return what to show of the batch of an examination, and the batch with what its sources say of it.

    Args:
        batch: of the examination.
        sources: what makes the batches.
        shown: whether it is to be shown.
    """
    name = _name_of_tokens(batch.inputs)
    tokenizer = None if name is None else tokenizer_in(*sources)
    columns = next(filter(None, map(text_by_column, sources)), {})
    unread = (column for column, of_text in columns.items() if not of_text and column not in batch.inputs)
    words = first_words(*sources) if any(_may_be_ids(array) for array in batch.inputs.values()) else {}
    batch = replace(batch, unread=tuple(unread), first_words=words)
    views = (_examined_view(batch, sources, tokenizer),) if shown else ()
    if name is None or tokenizer is None or has_several_meanings(tokenizer):
        return views, batch
    ids = np.unique(np.asarray(batch.inputs[name])[:ROWS, :TOKENS])
    special = {int(id) for id in (tokenizer.all_special_ids or ())} - {tokenizer.unk_token_id}
    found = Vocabulary(
        name_of_tokenizer(tokenizer),
        name,
        tokenizer.unk_token_id,
        frozenset(special),
        size_of_vocabulary(tokenizer),
        {id: text_of_token(tokenizer, id) for id in ids.tolist()},
    )
    return views, replace(batch, vocabulary=found)


def _examined_view(batch: BatchFacts, sources: tuple[Any, ...], tokenizer: Any) -> BatchView:
    targets = {} if batch.labels is None else {_name_of_target(batch): batch.labels}
    scalings = scalings_in(*sources) if any(array.ndim == 4 for array in batch.inputs.values()) else ()
    return batch_view("training", batch.inputs, targets, tokenizer=tokenizer, scalings=scalings, size=batch.size)


def _may_be_ids(array: Array) -> bool:
    return array.ndim == 2 and (array.dtype.kind in "iu" or bool((array == np.round(array)).all()))


def first_rows(batch: BatchFacts) -> BatchFacts:
    """Copy the first rows of a batch, for rules that judge it when the run is over; at most `KEPT_BYTES`."""
    parts = [array for array in (*batch.inputs.values(), batch.labels) if array is not None and array.ndim]
    each = sum(array.nbytes // max(len(array), 1) for array in parts)
    rows = min(batch.size, KEPT_ROWS, KEPT_BYTES // max(each, 1))
    inputs = {name: array[:rows].copy() for name, array in batch.inputs.items() if array.ndim}
    labels = None if batch.labels is None else batch.labels[:rows].copy()
    return replace(batch, size=rows, inputs=inputs, labels=labels)


def _name_of_target(batch: BatchFacts) -> str:
    name = batch.labels_name or "target"
    return "target" if name.isdigit() else name


def split_parts(batch: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part a batch of any structure into inputs and targets by name."""
    name = target_name(batch)
    inputs = fields(batch)
    target = None if name is None else inputs.pop(name)
    named = "target" if name is None or name.isdigit() else name
    nested = isinstance(target, Mapping) or (isinstance(target, tuple) and hasattr(target, "_fields"))
    targets = flat({named: target}) if nested else {} if target is None else {named: target}
    only = next(iter(inputs.values()), None)
    inputs = flat(fields(only) if len(inputs) == 1 and isinstance(only, Mapping) else inputs)
    others = [other for other in inputs if other.rpartition(".")[2] in LABEL_NAMES] if not targets else []
    return {n: v for n, v in inputs.items() if n not in others}, targets | {n: inputs[n] for n in others}
