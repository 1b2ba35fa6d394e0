"""See `PaddingInLoss`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Fix, NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.pipeline import BatchFacts, LossFacts, ModelFacts

SMALL = 0.05  # of the positions in the loss: below it the padding has little effect
ROWS, LENGTHS = 8, 3  # rows whose padding is inferred without a mask, and different lengths of it
PADDED = 0.25  # of these rows
FEWER = 0.75  # of the ids: tags are fewer; a rewritten text has as many


class PaddingInLoss(Rule):
    """Padding positions contribute to the loss.

    ## What it does
    Checks the labels where the attention mask is 0, in a batch with one label per token. These labels should have
    the value that the loss ignores (-100 by default). For decoders from transformers, whose labels are not aligned
    with the input, the rule looks for label rows that end with several pad tokens. Without an attention mask, an
    id counts as padding if it occurs only at one end of the rows and its label occurs nowhere else.

    ## Why it is bad
    The label at padding positions is always the same and is learned within a few steps, so the loss soon looks
    good. The real tokens get less weight, especially in short examples.

    ## Example
    ```python
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    loss = model(**batch, labels=batch["input_ids"]).loss  # pad tokens are labels as well
    ```

    ## Instead
    ```python
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    loss = model(**batch, labels=labels).loss
    ```

    ## Thresholds
    None: a single padding position whose label is not ignored is enough. The first padding position of each
    example does not count: it may be an end-of-text token that doubles as the pad token, and a language model has
    to learn the end of a text.

    Without an attention mask, the batch needs at least 8 rows. One id must fill the end (or the beginning) of at
    least a quarter of these rows, and occur nowhere else. The number of such positions must vary between rows,
    with at least 3 different values. All positions with this id must have the same label, and the other positions
    must have at least two other labels. The number of distinct labels must be at most 75% of the number of
    distinct ids. With more distinct labels, the targets may be texts in the same vocabulary, and the padding may
    have to mark where they end.

    ## Known problems
    Without an attention mask, the rule misses padding whose label also occurs elsewhere, such as "no entity". If a
    sequence ends by repeating a final state that has its own label, this state is mistaken for padding. The rule
    does not check Keras models whose masks or sample weights may exclude the padding, or decoders from other
    libraries whose labels are not aligned with the input.

    ## Sources
    PyTorch's documentation for `torch.nn.CrossEntropyLoss` (`ignore_index`); the Hugging Face course, chapter 7,
    "Token classification" (labels of -100); the documentation for `DataCollatorForTokenClassification`.
    """

    severity = "warning"

    @check
    def from_loss(self, batch: BatchFacts, loss: LossFacts, model: ModelFacts) -> Finding | None:
        """Count the labels at padding that count in the loss."""
        labels, ids, mask = _class_numbers(batch.labels), _token_ids(batch), batch.attention_mask
        if any(name.startswith("decoder_") for name in (*batch.inputs, *model.input_names)):
            return self._of_decoder(batch, loss, model)
        if labels is None or ids is None or labels.shape != ids.shape or labels.dtype.kind not in "iu":
            raise NotApplicable("needs one class label per token")
        pad = None
        if mask is None and loss.class_weights is False:  # otherwise the class at padding may weigh nothing
            pad = _padding_id(ids, labels, batch.ignore_index)
            mask = None if pad is None else (ids != pad).astype(int)
        if mask is None or mask.shape != labels.shape or not np.isin(mask, (0, 1)).all():
            raise NotApplicable(
                "needs an attention mask with a 0 or 1 for each token, or an id used only as padding"
            )
        if loss.kind != "cross_entropy":
            raise NotApplicable("needs a cross-entropy loss")
        if loss.masked is None and model.library == "keras":
            raise NotApplicable("it is not known whether a mask or sample weights exclude padding from the loss")
        if loss.masked:
            return None
        padding = mask == 0
        first = padding.copy()
        first[:, 1:] &= ~padding[:, :-1]
        counted = np.ones_like(padding) if batch.ignore_index is None else labels != batch.ignore_index
        wrong = counted & padding & ~first
        if not wrong.any():
            return None
        number, total = int(wrong.sum()), int(counted.sum())
        carried = sorted({int(label) for label in labels[wrong]})
        share = number / total
        small = share < SMALL
        one = number == 1
        harmless = " This share does little harm, but it is larger in batches of shorter texts." if small else ""
        what = f"label {carried[0]}" if len(carried) == 1 else f"labels {carried[0]} to {carried[-1]}"
        where = (
            "the attention mask is 0" if pad is None else f"the input id is {pad}, which is used only as padding"
        )
        copied = bool((labels == ids).all())
        return self.found(
            f"{number:,} of the {total:,} labels that count in this batch's loss ({share:.0%}) "
            f"{'is at a padding position' if one else 'are at padding positions'} ({what}), where {where}. The "
            "model learns these labels within a few steps, so the loss makes the model look better than it is, "
            f"and the real tokens count for less.{harmless}",
            fix=_fixes(batch.ignore_index, copied, "attention_mask == 0" if pad is None else f"ids == {pad}"),
            evidence={
                "labels_at_padding": number,
                "labels_in_loss": total,
                "share": round(share, 4),
                "small_share": small,
                "labels": carried[:5],
                "ignore_index": batch.ignore_index,
            },
        )

    def _of_decoder(self, batch: BatchFacts, loss: LossFacts, model: ModelFacts) -> Finding | None:
        """Count the labels at a decoder's padding: the pad token repeated up to the end of a row."""
        labels, pad = batch.labels, model.pad_token_id
        if model.library != "transformers" or pad is None or loss.kind != "cross_entropy":
            raise NotApplicable(
                "needs a Hugging Face decoder that has a pad token and computes its own cross-entropy loss"
            )
        if labels is None or labels.ndim != 2 or labels.dtype.kind not in "iu" or pad == batch.ignore_index:
            raise NotApplicable("needs one label per token")
        counted = np.ones(labels.shape, bool) if batch.ignore_index is None else labels != batch.ignore_index
        ends = np.cumprod(((labels == pad) | ~counted)[:, ::-1], axis=1)[:, ::-1].astype(bool)
        ends[:, 1:] &= ends[:, :-1]  # the first may be an end-of-text token that is also the pad token
        ends[:, 0] = False
        wrong = ends & counted & (labels == pad)
        number, total = int(wrong.sum()), int(counted.sum())
        if not number:
            return None
        share = number / total
        what = "is a pad token" if number == 1 else "are pad tokens"
        return self.found(
            f"{number:,} of the {total:,} labels that count in this batch's loss ({share:.0%}) {what} (id {pad}) "
            "after the end of the text. The model learns these labels within a few steps, so the loss makes the "
            "model look better than it is, and the real tokens count for less.",
            fix=(
                "labels[labels == tokenizer.pad_token_id] = -100",
                "use DataCollatorForSeq2Seq(tokenizer, model=model), and do not pad the labels before collation",
            ),
            evidence={
                "labels_at_padding": number,
                "labels_in_loss": total,
                "share": round(share, 4),
                "small_share": share < SMALL,
                "labels": [pad],
                "ignore_index": batch.ignore_index,
            },
        )


def _class_numbers(labels: Array | None) -> Array | None:
    """Return one number per token, also for one-hot labels and for labels with a last axis of length 1."""
    if labels is None or labels.ndim != 3:
        return labels
    if labels.shape[2] == 1:
        return labels[..., 0]
    one_hot = np.isin(labels, (0, 1)).all() and (labels.sum(axis=2) == 1).all()
    return np.asarray(labels.argmax(axis=2)) if one_hot else labels


def _token_ids(batch: BatchFacts) -> Array | None:
    """Return the token ids by their name, or else the only integers (size, length) in the batch."""
    integers = [values for values in batch.inputs.values() if values.ndim == 2 and values.dtype.kind in "iu"]
    return batch.token_ids if batch.token_ids is not None else integers[0] if len(integers) == 1 else None


def _padding_id(ids: Array, labels: Array, ignored: int | None) -> int | None:
    """Return the id that fills one end of rows up to their length and has a tag of its own; None if none does."""
    if ids.ndim != 2 or len(ids) < ROWS:
        return None
    for end in (-1, 0):
        values, counts = np.unique(ids[:, end], return_counts=True)
        for pad in values[counts >= PADDED * len(ids)]:
            padding = ids == pad
            lengths, filled = padding.sum(axis=1), padding[:, ::-1] if end else padding
            own, others = (set(np.unique(labels[part]).tolist()) - {ignored} for part in (padding, ~padding))
            if (
                (filled == (np.arange(ids.shape[1]) < lengths[:, None])).all()
                and (lengths > 1).mean() >= PADDED
                and len(np.unique(lengths)) >= LENGTHS
                and len(own) == 1 < len(others)
                and not own & others
                and len(own | others) <= FEWER * len(np.unique(ids))
            ):
                return int(pad)
    return None


def _fixes(ignore_index: int | None, copied: bool, padding: str) -> dict[str, Fix]:
    ignore = -100 if ignore_index is None else ignore_index
    line = f"labels = labels.masked_fill({padding}, {ignore})"
    collator = (
        "DataCollatorForLanguageModeling(tokenizer, mlm=False)"
        if copied
        else "DataCollatorForTokenClassification(tokenizer)"
    )
    return {
        "torch": line,
        "transformers": (line, f"data_collator={collator}, which pads the labels too"),
        "keras": (
            "yield (inputs, labels, sample_weight) with the padding mask as sample_weight",
            "SparseCategoricalCrossentropy(from_logits=True, ignore_class=-100), with label -100 at padding "
            "positions",
        ),
    }
