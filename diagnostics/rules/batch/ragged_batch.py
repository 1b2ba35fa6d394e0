"""See `RaggedBatch`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.data import RaggedColumns
from diagnostics.text.join import listed, not_known

PAD = (
    "data_collator=DataCollatorWithPadding(tokenizer), which pads each batch",
    "tokenizer(..., padding=True), where you tokenize",
    "pad_sequence(..., batch_first=True) in a custom collate_fn",
)
OF_TOKENS = re.compile(r"^(?:.*/)?(?:transformers|tokenizers|trl)/")  # a file in a traceback
BY_HAND = (
    "make all examples equally long where the data set returns them, or pad them in a custom collate_fn: "
    "pad_sequence(..., batch_first=True)",
    *PAD[:2],
)
# DataCollatorWithPadding does not pad labels; these two pad them with -100.
PAD_LABELS = (
    "data_collator=DataCollatorForTokenClassification(tokenizer), which pads the labels too",
    "data_collator=DataCollatorForSeq2Seq(tokenizer), which pads the labels too",
    "pad_sequence(..., batch_first=True, padding_value=-100) in a custom collate_fn",
)
OBJECTS = (
    (
        "np.array(rows, dtype=object), if the rows are meant to differ in length: NumPy before 1.24 did this "
        "automatically"
    ),
    "np.concatenate(batches), for per-batch results whose last batch is smaller",
)
_BATCHES = re.compile(r"transformers|collat|datasets/")  # files whose code batches texts
_BY_WORKER = re.compile(r"utils[\\/]data[\\/]_utils[\\/]worker\.py")
IMAGE_AXES = 3  # channels, height and width
RESIZE = (
    "use torchvision.transforms.Resize((height, width)) as the first transform; Resize(n) keeps the aspect ratio, "
    "so sizes still differ",
    "take random crops of a fixed size during training",
    "pad_sequence(..., batch_first=True) in a custom collate_fn, for spectrograms of different durations",
)
CHANNELS = 4  # of an image, at most
MODES = (
    "read every image in one mode: Image.open(path).convert('RGB'), or convert('L') for masks and grey images",
    "for a mask of class numbers with three equal channels: mask[0]; one with colours must be mapped to numbers",
)
RESIZE_KERAS = (
    "resize before batch(): dataset.map(lambda image, label: (tf.image.resize(image, (224, 224)), label))",
    "dataset.padded_batch(...) in place of batch(), if the sizes must be kept",
)
ORIENTATION = (
    "make the orientation equal where an example is read: x.transpose(-1, -2) for those with height and width "
    "swapped; portrait and landscape images need a rotation, a square crop or padding",
    "look for a transform, a reshape or a (width, height) argument that is applied to only some of the examples",
)
PAD_KERAS = (
    'dataset.to_tf_dataset(..., collate_fn=DataCollatorWithPadding(tokenizer, return_tensors="np"))',
    "dataset.padded_batch(32) instead of batch(32)",
    'keras.utils.pad_sequences(rows, padding="post")',
)


class RaggedBatch(MessageRule):
    """Examples of different lengths are batched without padding.

    ## What it does
    Recognises the error raised when examples cannot be stacked, and reads from the stack frames which columns
    differ in length.

    ## Why it is bad
    A batch is one tensor, so all examples must have the same number of values. The error message gives at most two
    of the lengths and does not name the column. In PyTorch, the message is
    `expected sequence of length 11 at dim 1 (got 13)` or `stack expects each tensor to be equal size`; in
    TensorFlow, it is `Can't convert non-rectangular Python sequence to Tensor` or
    `Cannot batch tensors with different shapes in component 0`.

    ## Example
    ```python
    rows = rows.map(lambda row: tokenizer(row["text"]))
    trainer = Trainer(model, args, train_dataset=rows)
    ```

    ## Instead
    ```python
    rows = rows.map(lambda row: tokenizer(row["text"]))
    collator = DataCollatorWithPadding(tokenizer)
    trainer = Trainer(model, args, train_dataset=rows, data_collator=collator)
    ```

    ## Thresholds
    None: the rule fires only after stacking has failed.

    ## Known problems
    Images of different sizes raise the same error, but they need resizing or cropping, not padding.

    ## Sources
    The Hugging Face course, chapter 8, "Debugging the training pipeline"; the documentation for
    `transformers.DataCollatorWithPadding` and `torch.nn.utils.rnn.pad_sequence`.
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: RaggedColumns) -> Finding | None:
        """Name columns and lengths, or state what the text does not show."""
        images = symptom.shapes is not None and len(symptom.shapes[0]) >= IMAGE_AXES
        what = "resizes the examples to the same shape" if images else "pads the shorter examples"
        rectangular = f"A tensor is rectangular, and nothing {what}"
        evidence = {
            "lengths": {name: list(lengths) for name, lengths in symptom.lengths.items()},
            "clash": list(symptom.clash or ()),
        }
        if symptom.lengths:
            count = max(map(len, symptom.lengths.values()))
            examples = f"{count} examples" if crash.in_keras else f"{count} examples in this batch"
            return self.found(
                f"The {examples} differ in length: {_ranges(symptom.lengths)}. {rectangular}.",
                fix={"torch": RESIZE, "keras": RESIZE_KERAS} if images else _fixes(symptom.lengths),
                evidence=evidence,
                where=crash.where,
            )
        column = symptom.column
        if symptom.is_open:
            lists = "The lists of a column" if column is None else f"The lists of {_called(column)}"
            return self.found(
                f"{lists} could not be made into one tensor. Either they differ in length, and nothing pads "
                "them, or they hold text, None or other lists. The first error in the traceback shows which it "
                "is. 'expected sequence of length' means different lengths; \"too many dimensions 'str'\" and "
                "'Could not infer dtype of NoneType' mean that the lists hold something other than numbers.",
                fix=(
                    *(PAD_LABELS if column in ("labels", "label") else PAD),
                    "remove or encode the column, if it is not a list of numbers",
                ),
                evidence=evidence,
                where=crash.where,
            )
        of = "" if column is None else f" in {_called(column) if column.isdigit() else repr(column)}"
        seen = f"Examples of different lengths{of} cannot be stacked"
        if symptom.shapes:
            one, other = map(list, symptom.shapes)
            seen = f"One example has shape {one}{of} and another {other}, so they cannot be stacked"
        elif symptom.clash:
            one_size, other_size = symptom.clash
            seen = f"One example has {one_size} values{of} and another {other_size}, so they cannot be stacked"
        unknown = ""
        if not crash.live:
            which = "the sizes of the other examples"
            which = which if column else f"the name of the column and {which}"
            unknown = f" {not_known(which, live=False)}"
            if _BY_WORKER.search("".join(frame.file for frame in crash.frames)):
                unknown += " A DataLoader worker passes on only the error's text: set num_workers=0 to see more."
        elif column is None:
            unknown = f" {not_known('the name of the column', live=True)}"
        of_arrays = _of_arrays(crash)
        swapped = images and symptom.shapes is not None and _is_swapped(*symptom.shapes)
        channels = symptom.shapes is not None and _channels_apart(*symptom.shapes)
        # A collator of transformers makes tensors of lists, which fails in other words.
        by_hand = "stack expects" in crash.message and column is None and not (crash.live or _of_tokens(crash))
        if swapped:
            rectangular = f"Two axes, most likely height and width, are swapped. {rectangular}"
        if channels:
            rectangular = "They are images or masks of one size, but only one of them has an axis of channels"
        told = (
            "The rows of a NumPy array differ in shape, which NumPy has refused since 1.24. They are either "
            "unpadded rows of a dataset, or evaluation results with a smaller last batch or several outputs."
            if of_arrays
            else f"{seen} into one batch. {rectangular}.{unknown}"
        )
        return self.found(
            told,
            fix=(*ORIENTATION, *RESIZE[:1])
            if swapped
            else MODES
            if channels
            else {"torch": RESIZE, "keras": RESIZE_KERAS}
            if images
            else of_arrays or _fixes([column] if column else [], by_hand),
            evidence=evidence | ({"column": column} if column else {}),
            where=crash.where,
        )


def _channels_apart(one: Sequence[int], other: Sequence[int]) -> bool:
    """Return whether two shapes are those of an image without channels, and of one as large with channels."""
    flat, deep = sorted((tuple(one), tuple(other)), key=len)
    if (len(flat), len(deep)) != (2, 3):
        return False
    return (flat == deep[1:] and deep[0] <= CHANNELS) or (flat == deep[:2] and deep[2] <= CHANNELS)


def _is_swapped(one: Sequence[int], other: Sequence[int]) -> bool:
    """Return whether two shapes have the same sizes, two of them in each other's place."""
    apart = [(a, b) for a, b in zip(one, other, strict=False) if a != b]
    return len(one) == len(other) and len(apart) == 2 and apart[0] == apart[1][::-1]


def _of_arrays(crash: CrashFacts) -> Fix | None:
    """Return the fix if NumPy itself refused; None otherwise, or if texts were batched."""
    by_numpy = "inhomogeneous" in crash.message and not crash.live
    in_batch = any(_BATCHES.search(f"{frame.file} {frame.function}") for frame in crash.frames)
    return (*OBJECTS, *PAD[1:]) if by_numpy and not in_batch else None


def _of_tokens(crash: CrashFacts) -> bool:
    return any(OF_TOKENS.match(frame.file) for frame in crash.frames)


def _fixes(columns: Collection[str], by_hand: bool = False) -> dict[str, Fix]:
    padded = BY_HAND if by_hand else PAD
    return {"torch": PAD_LABELS if {"labels", "label"} & set(columns) else padded, "keras": PAD_KERAS}


def _called(column: str) -> str:
    return f"item {column} of each example" if column.isdigit() else column


def _ranges(lengths: Mapping[str, tuple[int, ...]]) -> str:
    """Give the shortest and longest length, once for columns with the same ones."""
    columns: dict[tuple[int, int], list[str]] = {}
    for name, sizes in lengths.items():
        columns.setdefault((min(sizes), max(sizes)), []).append(_called(name))
    return "; ".join(
        f"{low} {'or' if high == low + 1 else 'to'} {high} values in {listed(names)}"
        for (low, high), names in columns.items()
    )
