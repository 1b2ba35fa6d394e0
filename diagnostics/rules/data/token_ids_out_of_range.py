"""See `TokenIdsOutOfRange`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import NAN
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.crash import CrashFacts, TokenBeyondEmbedding
from diagnostics.facts.pipeline import Array, BatchFacts, ModelFacts
from diagnostics.facts.where import Where

MAX_FIRST_POSITION = 2  # most models count positions from 0; RoBERTa from one past its pad token's id, 1

FIX = (
    "load tokenizer and model from the same name; after tokenizer.add_tokens(...): "
    "model.resize_token_embeddings(len(tokenizer))"
)
NOT_NEGATIVE = "put the pad token's id, not -100, where the input is padded"
FIX_KERAS = (
    "load tokenizer and model from the same preset; in a model of your own: keras.layers.Embedding(n, ...), with "
    "n the largest id + 1"
)


class TokenIdsOutOfRange(Rule):
    """An id asks for a row that the embedding does not have.

    ## What it does
    Compares the token ids of a batch with the number of rows of the model's token embedding. Ids must run
    from 0 to one less than the number of rows. After a crash the embedding that failed is read from the
    frames; if it was asked for consecutive positions, the sequence was too long, and that is what is said.

    ## Why it is bad
    An embedding is a table, and an id is the number of a row. PyTorch on a CPU raises `IndexError: index out
    of range in self`, which names neither the id nor the table; a GPU stops with a device-side assert that
    surfaces somewhere else; TensorFlow says `indices[0,7] = 30522 is not in [0, 30522)` on a CPU and answers
    with zeros on a GPU. Usually the tokenizer belongs to another
    checkpoint, or tokens were added to it and the embedding was not enlarged.

    ## Example
    ```python
    tokenizer = AutoTokenizer.from_pretrained(name)
    tokenizer.add_tokens(["<laugh>", "<sigh>"])
    model = AutoModelForSequenceClassification.from_pretrained(name)
    ```

    ## Instead
    ```python
    tokenizer = AutoTokenizer.from_pretrained(name)
    tokenizer.add_tokens(["<laugh>", "<sigh>"])
    model = AutoModelForSequenceClassification.from_pretrained(name)
    model.resize_token_embeddings(len(tokenizer))
    ```

    ## Thresholds
    None for the range: one id outside is enough. Ids count as positions if they rise by one from at most 2,
    where RoBERTa begins (its pad token's id, plus one).

    ## Known problems
    Before training, one batch is looked at; an id so rare that this batch lacks it is found only when it
    arrives. A few multimodal models mark the place of an image with an id that they replace before the
    embedding sees it; such an id is reported if it lies outside the table.

    ## Sources
    PyTorch's documentation of `torch.nn.Embedding` (`num_embeddings`); TensorFlow's of `tf.gather` ("on GPU,
    if an out of bound index is found, a 0 is stored"); the documentation of
    `PreTrainedModel.resize_token_embeddings`.
    """

    severity = "error"
    causes = ("asynchronous-error", *NAN)
    no_exhibit = "the same mistake in the input as labels-out-of-range is in the target, which exhibit 04 shows"

    @check
    def from_batch(self, batch: BatchFacts, model: ModelFacts) -> Finding | None:
        """Compare the token ids of one batch with the rows of the token embedding."""
        ids = batch.token_ids
        if ids is None or not np.issubdtype(ids.dtype, np.integer):
            raise NotApplicable("needs token ids in the batch")
        if model.embedding_rows is None:
            raise NotApplicable("needs the number of rows of the token embedding")
        why = "the tokenizer knows more tokens than the model was built for"
        return self._compare(ids, model.embedding_rows, "token ids", why)

    @check
    def from_crash(self, crash: CrashFacts, symptom: TokenBeyondEmbedding) -> Finding | None:
        """Read ids and rows out of the frames, or say what the text leaves open."""
        if symptom.ids is not None and symptom.rows is not None:
            if _are_positions(symptom.ids):
                return self._too_long(symptom.ids, symptom.rows, crash.where)
            why = "if they are tokens, the tokenizer knows more of them than the model was built for"
            finding = self._compare(symptom.ids, symptom.rows, "ids", why, crash.where)
            if finding is not None:
                return finding
        if symptom.offending is not None and symptom.rows is not None:
            return self._one(symptom.offending, symptom.rows, crash)
        unknown = (
            "Neither could be read from the exception's frames."
            if crash.live
            else "Which id, and how many rows there are, cannot be known from the text: pass the exception "
            "itself to diagnostics.explain."
        )
        return self.found(
            "An embedding was asked for a row that it does not have: a token id past the vocabulary it was "
            f"built for, or a position past the longest sequence. {unknown}",
            fix=FIX,
            where=crash.where,
        )

    def _one(self, offending: int, rows: int, crash: CrashFacts) -> Finding:
        """Say it of the one id that the message names."""
        table = f"the embedding has {rows} rows, for ids 0 to {rows - 1}"
        if offending < 0:
            seen = f"An id in this batch is {offending}, but rows are counted from 0 and {table}."
            fix = NOT_NEGATIVE
        else:
            seen = (
                f"An id in this batch is {offending}, but {table}. If it is a token, the tokenizer knows more of "
                "them than the model was built for."
            )
            fix = FIX_KERAS if crash.in_keras else FIX
        evidence = {"highest_id": offending, "embedding_rows": rows}
        return self.found(seen, fix=fix, evidence=evidence, where=crash.where)

    def _compare(self, ids: Array, rows: int, called: str, why: str, where: Where | None = None) -> Finding | None:
        outside = ids[(ids < 0) | (ids >= rows)]
        if not outside.size:
            return None
        low, high = int(ids.min()), int(ids.max())
        counted = f"{outside.size} of the {ids.size} {called} in this batch"
        evidence = {
            "lowest_id": low,
            "highest_id": high,
            "embedding_rows": rows,
            "ids_outside": int(outside.size),
            "ids_in_batch": int(ids.size),
        }
        table = f"the embedding has {rows} rows, for ids 0 to {rows - 1}"
        verb = "lies" if outside.size == 1 else "lie"
        if low < 0:
            return self.found(
                f"The {called} run from {low} to {high}, but rows are counted from 0 and {table}. {counted} "
                f"{verb} outside. A negative number such as -100 belongs in the labels, to mark what the "
                "loss leaves out.",
                fix=NOT_NEGATIVE,
                evidence=evidence,
                where=where,
            )
        return self.found(
            f"The {called} run from {low} to {high}, but {table}. {counted} {verb} outside: {why}.",
            fix=FIX,
            evidence=evidence,
            where=where,
        )

    def _too_long(self, positions: Array, rows: int, where: Where | None) -> Finding:
        length, first = int(positions.shape[-1]), int(positions.min())
        return self.found(
            f"The embedding that failed was asked for consecutive rows up to {int(positions.max())} and has "
            f"{rows}. These look like positions, not tokens: a sequence of {length} is longer than the "
            "model can number.",
            fix=f"cut the sequences to length: tokenizer(..., truncation=True, max_length={rows - first})",
            evidence={"sequence_length": length, "positions": rows},
            where=where,
        )


def _are_positions(ids: Array) -> bool:
    """Whether every row counts up by one from its first position, as position ids do and no text does."""
    if not ids.ndim or ids.shape[-1] < 2 or not 0 <= ids.min() <= MAX_FIRST_POSITION:
        return False
    return bool((np.diff(ids, axis=-1) == 1).all())
