"""See `PaddingAttended`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.dependence import DependenceFacts
from diagnostics.rules.shared.padding import changed_predictions

LEFT = 0.02  # of the words' effect without padding; a mean over positions keeps a larger share
ZERO = 0  # the token that Keras' mask_zero ignores
MASK = "src_key_padding_mask=tokens == PAD  # True where there is padding"
SEEN = 1e-4  # of the size of the predictions; less is rounding error, or a model that reads no words at all


class PaddingAttended(Rule):
    """The model reads the padding of a row, so the words hardly matter.

    ## What it does
    After the run, the rule finds an input whose rows end in padding of different lengths. It runs the trained
    model on some rows with and without their padding, and again with the words replaced. The rule fires if new
    words change the prediction without padding but hardly change it with padding, or if the prediction without
    padding is NaN. It also fires if the mask of a PyTorch attention layer masks every word in the batch but none
    of the padding.

    Under `diagnose run`, the rule also reports transformers' warning that `generate()` received right-padded
    prompts.

    ## Why it is bad
    A recurrent network gives its last output on a padded row only after reading all of the padding, and by then it
    has forgotten the words. PyTorch's attention layers expect a mask that is true for the padding. A mask that is
    true for the words hides everything that should be read; in a row without padding, the result is NaN.

    ## Example
    ```python
    outputs, _ = lstm(embed(tokens))
    logits = head(outputs[:, -1])              # of the padding, except in the longest row
    encoder(x, src_key_padding_mask=tokens != 0)
    ```

    ## Instead
    ```python
    packed = pack_padded_sequence(
        embed(tokens), lengths, batch_first=True, enforce_sorted=False
    )
    _, (last, _) = lstm(packed)
    encoder(x, src_key_padding_mask=tokens == 0)      # True: ignore
    ```

    ## Thresholds
    At least four rows must have padding. When all words but the first are replaced, the prediction with padding
    must change by less than 1/50 of the change without padding. The rows with the most padding (at least half of
    the longest) must also have nearly equal predictions, by the same factor.

    ## Known problems
    Only models that give one prediction per row are checked. Padding at the start is not checked, because the
    words then come last.

    ## Sources
    The documentation for `torch.nn.MultiheadAttention` (`key_padding_mask`: True is ignored) and
    `torch.nn.utils.rnn.pack_padded_sequence`; forum questions about the last output of a padded batch.
    """

    severity = "warning"
    causes = ("vanishing-gradients", "ignores-input", *NO_LEARNING)

    @check
    def from_answers(self, dependence: DependenceFacts) -> Finding | None:
        """Compare the effect of the words on the prediction with and without the padding."""
        padding = dependence.padding
        if padding is None:
            raise NotApplicable(dependence.why_not.get("padding", "needs a padded input"))
        if not dependence.trained:
            raise NotApplicable("needs the trained model at the end of a run")
        shown = "the input" if padding.input.isdigit() else f"the input {padding.input!r}"
        evidence = {
            "rows": padding.rows,
            "longest": padding.longest,
            "with_padding": padding.with_padding,
            "without": padding.without,
            "spread": padding.spread,
            "fails": padding.fails,
            "hides_words": padding.hides_words,
        }
        if padding.hides_words:
            return self.found(
                f"The padding mask passed to attention is True for every real token in {padding.rows} rows of "
                f"{shown} and False for their padding (up to {padding.longest} positions). PyTorch's attention "
                "ignores positions that are True, so the tokens are masked out and the padding is attended to.",
                fix=MASK,
                evidence=evidence,
                severity="error",
            )
        if padding.fails == padding.rows:
            return self.found(
                f"Without padding, the prediction for each of {padding.rows} rows of {shown} is NaN; with "
                "padding, it is finite. The padding mask is inverted: PyTorch's attention ignores positions where "
                "it is True, so the words are hidden and the padding is attended to.",
                fix=MASK,
                evidence=evidence,
                severity="error",
            )
        left = max(padding.with_padding, padding.spread)
        if padding.fails or padding.without <= SEEN or left >= LEFT * padding.without:
            return None
        moved = padding.removed is not None and padding.removed.moved
        after = "moved to the other end" if moved else "removed"
        return self.found(
            f"In {padding.rows} rows of {shown} (with up to {padding.longest} positions of padding), replacing "
            f"the words changes the prediction by only {padding.with_padding:.2g}; once the padding is "
            f"{after}, the same replacement changes it by {padding.without:.2g}. "
            f"{changed_predictions(padding.removed)}The prediction depends on the padding and "
            " barely on the words.",
            fix={
                "torch": (
                    "take the output at the last word of each row: outputs[range(len(x)), lengths - 1]",
                    "call pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False) before the "
                    "recurrent layer",
                    MASK,
                ),
                "keras": (
                    *(["keras.layers.Embedding(..., mask_zero=True)"] if padding.blank == ZERO else []),
                    'keras.utils.pad_sequences(..., padding="pre")  # the words come last',
                ),
            },
            evidence=evidence,
        )
