"""See `UnknownTokens`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.inputs import Vocabulary
from diagnostics.facts.pipeline import BatchFacts
from diagnostics.text.join import among

MAX_UNKNOWN = 0.5  # share of the tokens: the 100 most frequent English words alone cover about half of a text
MIN_TOKENS = 32  # that a share is computed from: about two sentences
QUOTED = 16  # tokens of the row that is shown

FIX = {
    "torch": (
        "prepare the texts exactly as when the vocabulary was built: same lower-casing, splitting and "
        "normalisation",
        "load the tokenizer from the model's own checkpoint: AutoTokenizer.from_pretrained(name)",
        "build the vocabulary from the training texts, or load the right vocabulary file",
        "print(tokenizer.decode(batch[0]))  # is anything left of the text?",
    ),
    "keras": (
        "vectorize.adapt(train_texts)  # the same texts, standardize= and split= as in training",
        "for a vocabulary from a file, use the same standardize= as when the file was created",
        "print(vectorize(texts[:2]))  # 1 is the unknown token",
    ),
}


class UnknownTokens(Rule):
    """Most tokens are not in the vocabulary.

    ## What it does
    Finds the tokenizer or the vocabulary that encoded a batch of texts, and counts the unknown tokens. A token is
    unknown if its id is the tokenizer's `unk_token_id`, 1 in Keras' `TextVectorization`, or the id of `<unk>` or
    `[UNK]` in a dict. Padding and special tokens are left out.

    ## Why it is bad
    All unknown words get the same id. The model cannot distinguish texts that consist mostly of unknown words, so
    it learns little more than a constant prediction. Usually, the texts are preprocessed differently from those
    that the vocabulary was built from (for example in upper case), or the vocabulary belongs to a different
    checkpoint, language or file.

    ## Example
    ```python
    words = ["<pad>", "<unk>", *sorted(set(all_texts.lower().split()))]
    vocabulary = {word: id for id, word in enumerate(words)}
    ids = [vocabulary.get(word, 1) for word in text.split()]  # "Great" is not "great"
    ```

    ## Instead
    ```python
    words = ["<pad>", "<unk>", *sorted(set(all_texts.lower().split()))]
    vocabulary = {word: id for id, word in enumerate(words)}
    ids = [vocabulary.get(word, 1) for word in text.lower().split()]
    ```

    ## Thresholds
    There must be at least 32 tokens, and more than half of them must be unknown. For comparison, the 100 most
    frequent words alone cover about half of an English text. With a small vocabulary built from the training
    texts, the share is usually 10% to 30%, which is not reported.

    ## Known problems
    Only one batch is checked, and only if the tokenizer is found in the collator, the dataset, the Trainer or the
    script's global variables. If preprocessing drops unknown words, they leave no trace in the batch.

    ## Sources
    Edward Fry, "The New Instant Word List" (The Reading Teacher, 1980): the first 100 words make up about half of
    all written English. The documentation for `transformers.PreTrainedTokenizerBase` (`unk_token`) and
    `keras.layers.TextVectorization` (index 1 is "[UNK]").
    """

    severity = "warning"
    causes = ("repeated-batch", "constant-inputs", "evaluation-at-chance", *NO_LEARNING)

    @check
    def from_batch(self, batch: BatchFacts) -> Finding | None:
        """Count the unknown tokens of one batch."""
        vocabulary = batch.vocabulary
        if vocabulary is None:
            raise NotApplicable("needs the tokenizer or the vocabulary that encoded the batch")
        ids = batch.inputs.get(vocabulary.input)
        if ids is None or ids.ndim != 2 or ids.dtype.kind not in "iu":
            raise NotApplicable("needs token ids in the batch")
        if vocabulary.size is not None and (ids.shape[1] == vocabulary.size or ids.max() >= 2 * vocabulary.size):
            raise NotApplicable(
                "needs ids from the detected vocabulary, but the inputs are counts or ids from another vocabulary"
            )
        real = _real(ids, batch.attention_mask, vocabulary)
        tokens = int(real.sum())
        if tokens < MIN_TOKENS:
            raise NotApplicable(f"needs at least {MIN_TOKENS} tokens in the batch")
        unknown = (ids == vocabulary.unknown) & real
        share = float(unknown.sum()) / tokens
        if share <= MAX_UNKNOWN:
            return None
        row = int(unknown.sum(axis=1).argmax())
        words = [vocabulary.words.get(id, str(id)) for id in ids[row][real[row]].tolist()]
        quoted = " ".join(words[:QUOTED]) + (" …" if len(words) > QUOTED else "")
        return self.found(
            f"{share:.0%} of the tokens in this batch are unknown: {among(int(unknown.sum()), tokens, 'token')} "
            f"have id {vocabulary.unknown}, which replaces every word outside the vocabulary "
            f"({vocabulary.name}). "
            f"Row {row} is read as: {quoted}. The model cannot tell texts like this apart.",
            fix=FIX,
            evidence={
                "unknown_share": round(share, 4),
                "unknown_tokens": int(unknown.sum()),
                "tokens": tokens,
                "unknown_id": vocabulary.unknown,
                "tokenizer": vocabulary.name,
                "row": row,
            },
        )


def _real(ids: Array, mask: Array | None, vocabulary: Vocabulary) -> Array:
    """Return which ids stand for words.

    Without a mask and without a known padding token, a run of unknown tokens at the end of a row may be padding.
    """
    real = ~np.isin(ids, list(vocabulary.special))
    if mask is not None and mask.shape == ids.shape:
        return np.asarray(real & (mask != 0))
    if not vocabulary.special:
        words = ids != vocabulary.unknown
        real &= np.flip(np.maximum.accumulate(np.flip(words, axis=1), axis=1), axis=1)
    return np.asarray(real)
