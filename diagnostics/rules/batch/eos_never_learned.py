"""See `EosNeverLearned`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.inputs import EndToken
from diagnostics.facts.pipeline import BatchFacts

TEXTS = 2  # texts that end before the batch does, or with the end token
LABELS = 4  # labels that count in each: fewer may be a verdict, which needs no end token
OWN_PADDING = (
    'tokenizer.add_special_tokens({"pad_token": "<|pad|>"}); model.resize_token_embeddings(len(tokenizer))'
)


class EosNeverLearned(Rule):
    """The end-of-text token never contributes to the loss.

    ## What it does
    Checks a batch of a language model whose labels are the input tokens or the next tokens. The rule fires if
    texts end within the batch but the end-of-text token appears nowhere among the labels. The finding gives the
    reason: the token's label is ignored, the attention mask treats the token as padding, or the texts contain no
    end-of-text token.

    For an encoder-decoder model such as T5, the rule checks all targets of the batch that are shorter than the
    longest one. For any other model that predicts the next token, the rule fires if the loss ignores the last
    label of each text but counts the labels of the padding after it.

    ## Why it is bad
    The model never learns where a text ends. The loss is low, but generated text runs on until `max_new_tokens`,
    repeating itself or starting a new text. There are three common causes:

    - `tokenizer.pad_token = tokenizer.eos_token`, combined with a collator that ignores the label of every pad
      token, including the one at the real end of the text
    - a decoder tokenizer that adds a start token but no end token
    - `ignore_index` set to the pad id of the source vocabulary, which is the id of the end token in the target
      vocabulary

    ## Example
    ```python
    tokenizer.pad_token = tokenizer.eos_token
    # labels of the pad token become -100
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    ```

    ## Instead
    ```python
    tokenizer.add_special_tokens({"pad_token": "<|pad|>"})
    model.resize_token_embeddings(len(tokenizer))
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    ```

    ## Thresholds
    At least 2 texts must end within the batch, each with at least 4 labels that are not ignored. If the end tokens
    of all texts are masked or missing, the finding is only a note, unless at least 2 texts begin with ignored
    labels, as texts with a prompt do.

    For an encoder-decoder model, at least 2 targets must be shorter than the longest one, which must have at least
    4 labels.

    If no configuration names the end token, each text must have exactly one ignored label. The position of this
    label must vary between texts, and at least one text must have 4 labels before it. At least 2 texts must have
    padding after it. All of the padding must have the same label, which must not occur before the ignored label.

    ## Known problems
    Only one batch is checked. For a model without a configuration, an end token that is missing or doubles as the
    pad token is not detected. A batch without an attention mask, or with blocks of equal length, is not checked.
    Neither are texts truncated at the maximum length, which have no end to learn.

    ## Sources
    The documentation and source code of `transformers.DataCollatorForLanguageModeling`; public issues about
    fine-tuned models that do not stop generating.
    """

    severity = "warning"

    @check
    def from_batch(self, batch: BatchFacts, end: EndToken) -> Finding | None:
        """Check the labels of the last tokens."""
        ids, mask = batch.token_ids, batch.attention_mask
        ignored = -100 if batch.ignore_index is None else batch.ignore_index
        if end.of_targets:
            return self._of_targets(batch, end, ignored)
        labels = None if ids is None or ids.ndim != 2 else _of_tokens(batch.labels, ids, ignored)
        if ids is None or labels is None:
            raise NotApplicable("needs a label for each token")
        if mask is None or mask.shape != ids.shape or not np.isin(mask, (0, 1)).all():
            raise NotApplicable("needs an attention mask of zeros and ones, one per token")
        counted = labels != ignored
        if not counted.any() or (labels != ids)[counted].any():
            raise NotApplicable("needs a language model whose labels are its input tokens")
        rows, length = np.arange(len(ids)), ids.shape[1]
        last = length - 1 - np.argmax(mask[:, ::-1] == 1, axis=1)
        long_enough = (mask[rows, last] == 1) & (counted.sum(axis=1) >= LABELS)
        ended = long_enough & np.isin(ids[rows, last], end.tokens)
        padded = long_enough & (mask.sum(axis=1) < length)
        if max(ended.sum(), padded.sum()) < TEXTS:
            raise NotApplicable(f"needs at least {TEXTS} texts that are padded or end with the end-of-text token")
        given = np.asarray(batch.labels)
        if np.isin(given[given != ignored], end.tokens).any():
            return None
        if ended.sum() >= TEXTS:
            return self._ignored(len(ids), int(ended.sum()), int(ids[rows, last][ended][0]))
        first = np.argmax(mask == 1, axis=1)
        prompts = padded & ~counted[rows, np.minimum(first + 1, length - 1)]  # the label of a first token may be
        hidden = np.isin(ids[mask == 0], end.tokens).all()
        return self._absent(len(ids), int(padded.sum()), int(prompts.sum()), end.tokens[0], hidden=bool(hidden))

    @check
    def from_next_tokens(self, batch: BatchFacts) -> Finding | None:
        """Check next tokens that show where each text ends, because padding follows and counts."""
        ignored = -100 if batch.ignore_index is None else batch.ignore_index
        for ids in batch.inputs.values():
            if batch.labels is None or ids.ndim != 2 or not np.issubdtype(ids.dtype, np.integer):
                continue
            for tokens, labels in _next_tokens(ids, batch.labels.ravel(), ignored):
                if (padding := _padding_behind_ignored(labels, ignored)) is not None:
                    token = int(tokens[labels[:, : tokens.shape[1]] == ignored][0])
                    return self._ignored_alone(len(labels), token, padding, ignored)
        raise NotApplicable

    def _of_targets(self, batch: BatchFacts, end: EndToken, ignored: int) -> Finding | None:
        """Check the labels of a decoder, which are texts of their own."""
        targets = batch.class_labels
        if batch.labels is None or targets is None or batch.labels.size % batch.size or batch.labels.ndim > 2:
            raise NotApplicable("needs a label for each token")
        labels = batch.labels.reshape(batch.size, -1)
        counted = labels != ignored
        lengths = counted.sum(axis=1)
        longest = int(lengths.max(initial=0))
        shorter = (lengths > 0) & (lengths < longest)
        if shorter.sum() < TEXTS or longest < LABELS:
            raise NotApplicable(f"needs at least {TEXTS} targets that are shorter than the longest")
        if np.isin(labels[counted], end.tokens).any():
            return None
        last = labels.shape[1] - 1 - np.argmax(counted[:, ::-1], axis=1)
        if len(np.unique(labels[shorter, last[shorter]])) == 1:
            raise NotApplicable("all targets end with the same token, at which the script may stop generating")
        number = int(shorter.sum())
        return self.found(
            f"None of the {batch.size} targets in this batch has the end-of-text token (id {end.tokens[0]}) as a "
            f"label, but {number} of them are shorter than the longest, which has {longest} labels. The decoder "
            "never learns to end a text, so generation continues until max_length or max_new_tokens. Either the "
            "tokenizer adds no end token, or its label is ignored together with those of the padding.",
            fix=(
                "tokenizer(text_target=target + tokenizer.eos_token)",
                "labels = targets.masked_fill(target_mask == 0, -100)  # use the mask, not the token id",
            ),
            evidence={"texts": batch.size, "shorter": number, "longest": longest, "token": end.tokens[0]},
        )

    def _ignored(self, texts: int, ended: int, token: int) -> Finding:
        return self.found(
            f"{_share(ended, texts)} in this batch end with the end-of-text token (id {token}), but its label is "
            "always ignored, unlike those of the other tokens. The model never learns when to stop, so "
            "generation continues until max_new_tokens. Usually, the end token is also the pad token, and the "
            "collator masks the labels of all pad tokens.",
            fix=(
                OWN_PADDING,
                "labels = input_ids.masked_fill(attention_mask == 0, -100)  # use the mask, not the token id",
            ),
            evidence={"texts": texts, "ended": ended, "token": token},
        )

    def _ignored_alone(self, texts: int, token: int, padding: int, ignored: int) -> Finding:
        """Report an end token that is ignored instead of the padding behind it."""
        return self.found(
            f"Each of the {texts} targets in this batch ends with token {token}, whose label is always ignored. "
            f"Only token {padding} follows, and its label counts, so the loss ignores the end of each text "
            "instead of its padding. The model never learns when to stop, so generation continues until the "
            "maximum length.",
            fix=f"nn.CrossEntropyLoss(ignore_index={padding})  # the id that pads the targets"
            if ignored >= 0
            else f"labels = targets.masked_fill(targets == {padding}, {ignored})  # the id that pads the targets",
            evidence={"texts": texts, "ended": texts, "token": token, "padding": padding},
        )

    def _absent(self, texts: int, padded: int, prompts: int, token: int, *, hidden: bool) -> Finding:
        where = (
            "The end token is also the pad token, and the attention mask is 0 wherever it occurs, so an end "
            "token that belongs to a text would be masked like padding."
            if hidden
            else "The token does not occur in the batch."
        )
        return self.found(
            f"{_share(padded, texts)} in this batch are padded, but none of them has the end-of-text token (id "
            f"{token}) among its labels. {where} The model never learns when to stop, so generation continues "
            "until max_new_tokens.",
            fix=(
                "tokenizer(text + tokenizer.eos_token)",
                *((OWN_PADDING,) if hidden else ("use a chat template that writes eos_token after each answer",)),
            ),
            evidence={"texts": texts, "padded": padded, "prompts": prompts, "token": token, "hidden": hidden},
            severity=None if prompts >= TEXTS else "note",
        )


def _share(number: int, texts: int) -> str:
    return f"All {texts} texts" if number == texts else f"{number} of the {texts} texts"


def _next_tokens(ids: Array, labels: Array, ignored: int) -> Iterator[tuple[Array, Array]]:
    """Yield tokens (rows, length) and their labels, if the labels that count are the next tokens of a text.

    Texts are the rows or the columns of `ids`. The labels are as many as the tokens, or one fewer per text.
    """
    for tokens, is_transposed in ((ids, False), (ids.T, True)):
        rows, length = tokens.shape
        if not rows or labels.size not in (rows * length, rows * (length - 1)):
            continue
        of_next = labels.reshape(-1, rows).T if is_transposed else labels.reshape(rows, -1)
        seen = of_next[:, : length - 1]
        if ((seen == tokens[:, 1:]) | (seen == ignored)).all():
            yield tokens[:, 1:], of_next


def _padding_behind_ignored(labels: Array, ignored: int) -> int | None:
    """Return the one label that follows the ignored label of each row, and never comes before; None if not so."""
    left_out = labels == ignored
    places = np.argmax(left_out, axis=1)
    behind = np.arange(labels.shape[1]) > places[:, None]
    following = np.unique(labels[behind])
    if (left_out.sum(axis=1) != 1).any() or behind.any(axis=1).sum() < TEXTS or len(following) != 1:
        return None
    if len(np.unique(places)) == 1 or places.max() < LABELS or (labels == following[0])[~behind].any():
        return None
    return int(following[0])


def _of_tokens(labels: Array | None, ids: Array, ignored: int) -> Array | None:
    """Return the labels (rows, length) at the positions of their tokens; None if some token has none.

    Labels for a transformers model are already there. A custom loss gets the next token of each position, often
    flattened, and one fewer per row because the last position has none.
    """
    if labels is None or (labels.shape == ids.shape and (labels == ids)[labels != ignored].all()):
        return labels
    rows, length = ids.shape
    if labels.ndim > 2 or labels.size not in (rows * length, rows * (length - 1)):
        return None
    of_next = labels.reshape(rows, -1)[:, : length - 1]
    return np.hstack([np.full((rows, 1), ignored, of_next.dtype), of_next])
