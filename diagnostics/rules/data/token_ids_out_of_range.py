"""See `TokenIdsOutOfRange`."""

from __future__ import annotations

from diagnostics.engine.causality import NAN, NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import NotApplicable, check
from diagnostics.facts.array import Array
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.data import TokenBeyondEmbedding
from diagnostics.facts.pipeline import BatchFacts, ModelFacts
from diagnostics.facts.where import Where
from diagnostics.text.join import among, capitalized, not_known

MIN_INSIDE = 0.1  # of the rows have the padding's id between other ids
MAX_FIRST_POSITION = 2  # most models count positions from 0; RoBERTa starts one past its pad token's id, 1

FIX = {
    "torch": (
        "load the tokenizer and the model from the same checkpoint",
        "after tokenizer.add_tokens(...), call model.resize_token_embeddings(len(tokenizer))",
    ),
    "peft": (
        "load the tokenizer and the base model from the same checkpoint",
        "after tokenizer.add_tokens(...), call base.resize_token_embeddings(len(tokenizer)), then get_peft_model "
        "with the new rows in LoraConfig(trainable_token_indices=...): otherwise they stay frozen",
    ),
    "keras": (
        "load the tokenizer and the model from the same preset",
        "in a custom model, use keras.layers.Embedding(n, ...), where n is the largest id + 1",
    ),
}
TRUNCATE = (
    "if a sequence is longer than the model's maximum: tokenizer(..., truncation=True, max_length=512), or "
    "model.config.max_position_embeddings"
)
NOT_NEGATIVE = "pad the input with the pad token's id instead of -100"
NOT_FOUND = (
    "give missing words an id of at least 0: index.get(word, -1), str.find and pandas category codes return -1 "
    "for missing words",
    "pad with 0 (pad_sequences, mask_zero=True), and start the word ids at 1",
)
"""For an id of -1, which no tokenizer pads with."""
WHY = "the tokenizer has a larger vocabulary than the model"


class TokenIdsOutOfRange(MessageRule):
    """A token id is outside the embedding's range, or a word has the id of the padding.

    ## What it does
    Compares the token ids of a batch with the number of rows in the model's token embedding. Ids must be between 0
    and the number of rows minus 1. After a crash, the rule looks for the failing embedding in the stack frames; if
    the ids are consecutive positions, it reports that the sequence is too long.

    If the embedding masks the id 0 (`mask_zero`) or keeps its vector at 0 (`padding_idx=0`), word ids must start
    at 1. The rule looks for a dict in the script that assigns the id 0 to a word.

    ## Why it is bad
    PyTorch raises `IndexError: index out of range in self` on a CPU, and a device-side assert at a later line on a
    GPU. TensorFlow raises `indices[0,7] = 30522 is not in [0, 30522)` on a CPU and returns zeros on a GPU. Usually
    the tokenizer belongs to another checkpoint, or tokens were added without resizing the embedding.

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
    None: a single id outside the range is enough. Ids are treated as positions if they start at 2 or less and
    increase by one.

    A word with the id 0 is reported if the dict is as large as the embedding and numbers its words from 0 without
    gaps, and if the id 0 occurs between other ids in at least 10% of the batch's rows.

    ## Known problems
    Before training, only one batch is checked; a rare id elsewhere is found only when the model trains on it. A
    few multimodal models use an id as a placeholder for an image and replace it before the embedding; such an id
    is reported if it is out of range. A vocabulary in a local variable is not found.

    ## Sources
    Keras' documentation for `keras.layers.Embedding` (`mask_zero`: "index 0 cannot be used in the vocabulary");
    PyTorch's documentation for `torch.nn.Embedding` (`num_embeddings`); TensorFlow's documentation for `tf.gather`
    ("on GPU, if an out of bound index is found, a 0 is stored"); the documentation for
    `PreTrainedModel.resize_token_embeddings`.
    """

    severity = "error"
    causes = ("asynchronous-error", *NAN, *NO_LEARNING)

    @check
    def from_batch(self, batch: BatchFacts, model: ModelFacts) -> Finding | None:
        """Compare the token ids of one batch with the size of the token embedding."""
        import numpy as np

        ids = batch.token_ids
        if ids is None or not np.issubdtype(ids.dtype, np.integer):
            raise NotApplicable("needs token ids in the batch")
        if model.embedding_rows is None:
            raise NotApplicable("needs the size of the token embedding")
        return self._compare(ids, model.embedding_rows, "token ids", WHY)

    @check
    def from_words(self, batch: BatchFacts, model: ModelFacts) -> Finding | None:
        """Look for a word whose id is that of the padding."""
        import numpy as np

        found = [ids for ids in batch.inputs.values() if ids.ndim == 2 and ids.shape[1] > 1]
        if model.masked is None or model.masked[0] != 0 or len(found) != 1 or not batch.first_words:
            raise NotApplicable("needs token ids, an embedding that masks the id 0, and a dict of words")
        rows = model.masked[1]
        word = batch.first_words.get(rows)
        others = found[0] != 0
        between = np.maximum.accumulate(others, axis=1) & np.maximum.accumulate(others[:, ::-1], axis=1)[:, ::-1]
        inside = int((between & ~others).any(axis=1).sum())
        if word is None or inside < MIN_INSIDE * len(others) or not inside:
            return None
        keras = model.library == "keras"
        does = (
            "masks it (mask_zero=True), so the layers behind it skip this word"
            if keras
            else "keeps its vector at 0"
        )
        return self.found(
            f"The id 0 belongs to the word {word!r} and to the padding: in this batch, "
            f"{among(inside, len(others), 'row')} have it between other ids. But the embedding {does}"
            f"{'' if keras else ' (padding_idx=0), and a loss or a mask that ignores padding ignores this word'}.",
            fix="number the words from 1, and give the embedding one more row: id 0 is for padding",
            evidence={"word": word, "rows_with_it_inside": inside, "rows": len(others), "embedding_rows": rows},
            severity="warning",
        )

    @check
    def from_crash(self, crash: CrashFacts, symptom: TokenBeyondEmbedding) -> Finding | None:
        """Read ids and rows from the stack frames, or report what the text does not show."""
        if symptom.ids is not None and symptom.rows is not None:
            if _are_positions(symptom.ids):
                return self._too_long(symptom.ids, symptom.rows, crash.where)
            what = "this is a token id" if symptom.ids.size == 1 else "these are token ids"
            finding = self._compare(symptom.ids, symptom.rows, "ids", f"if {what}, {WHY}", crash.where)
            if finding is not None:
                return finding
        if symptom.offending is not None and symptom.rows is not None:
            return self._one(symptom.offending, symptom.rows, crash)
        return self.found(
            "An embedding got an index beyond its last row: either a token id outside the vocabulary, or a "
            "position beyond the maximum sequence length. "
            f"{not_known('the index and the number of rows', crash.live)}",
            fix={library: (*fix, TRUNCATE) for library, fix in FIX.items()},
            where=crash.where,
        )

    def _one(self, offending: int, rows: int, crash: CrashFacts) -> Finding:
        """Report the one id that the error message names."""
        table = f"the embedding has {rows} rows, for ids 0 to {rows - 1}"
        seen = f"This batch contains the id {offending}, but {table}."
        if offending >= 0:
            seen += f" If this is a token id, {WHY}."
        return self.found(
            seen,
            fix=NOT_FOUND if offending == -1 else NOT_NEGATIVE if offending < 0 else FIX,
            evidence={"highest_id": offending, "embedding_rows": rows},
            where=crash.where,
        )

    def _compare(self, ids: Array, rows: int, called: str, why: str, where: Where | None = None) -> Finding | None:
        outside = ids[(ids < 0) | (ids >= rows)]
        if not outside.size:
            return None
        low, high = int(ids.min()), int(ids.max())
        kind = called.removesuffix("s")
        span = f"The {called} range from {low} to {high}"
        if low == high:
            span = f"The only {kind} in this batch is {low}" if ids.size == 1 else f"All {called} are {low}"
        counted = f"{capitalized(among(int(outside.size), int(ids.size), kind))} in this batch"
        evidence = {
            "lowest_id": low,
            "highest_id": high,
            "embedding_rows": rows,
            "ids_outside": int(outside.size),
            "ids_in_batch": int(ids.size),
        }
        table = f"the embedding has {rows} rows, for ids 0 to {rows - 1}"
        verb = "is" if outside.size == 1 else "are"
        wrong = "It is out of range" if ids.size == 1 else f"{counted} {verb} out of range"
        if low < 0:
            return self.found(
                f"{span}, but {table}. {wrong}. A negative "
                "value such as -100 belongs in the labels, where the loss ignores it.",
                fix=NOT_NEGATIVE,
                evidence=evidence,
                where=where,
            )
        return self.found(
            f"{span}, but {table}. {wrong}: {why}.",
            fix=FIX,
            evidence=evidence,
            where=where,
        )

    def _too_long(self, positions: Array, rows: int, where: Where | None) -> Finding:
        length, first = int(positions.shape[-1]), int(positions.min())
        return self.found(
            f"The failing embedding has only {rows} rows, but got consecutive indices up to "
            f"{int(positions.max())}. These look like positions, not tokens: a sequence length of {length} "
            "exceeds the model's maximum length.",
            fix=f"truncate the sequences: tokenizer(..., truncation=True, max_length={rows - first})",
            evidence={"sequence_length": length, "positions": rows},
            where=where,
        )


def _are_positions(ids: Array) -> bool:
    """Return whether every row counts up by one, as position ids do and token ids do not."""
    import numpy as np

    if not ids.ndim or ids.shape[-1] < 2 or not 0 <= ids.min() <= MAX_FIRST_POSITION:
        return False
    return bool((np.diff(ids, axis=-1) == 1).all())
