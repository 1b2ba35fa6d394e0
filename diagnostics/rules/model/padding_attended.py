"""See `PaddingAttended`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.dependence import DependenceFacts
from diagnostics.facts.loss_graph import LossGraph, Node, Shape, known_sizes
from diagnostics.rules.shared.padding import changed_predictions

LEFT = 0.02  # of the words' effect without padding; a mean over positions keeps a larger share
ZERO = 0  # the token that Keras' mask_zero ignores
MASK = "src_key_padding_mask=tokens == PAD  # True where there is padding"
POOL = "pooled = (hidden * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)  # mask: 0 at padding"
MIN_SHARE, MIN_CHANGED = 0.1, 2  # of the padded rows that were compared
# Operations that may put something else in the place of padding: what is averaged is then not what was returned.
PUTS_IN = ("MaskedFill", "Where", "Index", "IndexPut", "IndexFill", "MaskedScatter", "Gather", "Scatter", "Custom")
SEEN = 1e-4  # of the size of the predictions; less is rounding error, or a model that reads no words at all


class PaddingAttended(Rule):
    """The model reads the padding of a row, so the words hardly matter.

    ## What it does
    After the run, the rule finds an input whose rows end in padding of different lengths. It runs the trained
    model on some rows with and without their padding, and then again with the words replaced. The rule fires if
    new words change the prediction without padding but hardly change it with padding, or if the prediction without
    padding is NaN. It also fires if the mask of a PyTorch attention layer masks every word in the batch but none
    of the padding.

    If the model gets a padding mask but the loss averages its vectors over all positions, padding included, the
    rule compares the result for padded rows with and without their padding.

    Under `diagnose run`, the rule also reports transformers' warning that `generate()` received right-padded
    prompts.

    ## Why it is bad
    A recurrent network computes its last output on a padded row only after reading all of the padding, and by then
    it has forgotten the words. PyTorch's attention layers expect a mask that is true for the padding. A mask that
    is true for the words hides everything that should be read; in a row without padding, the result is NaN.

    ## Example
    ```python
    outputs, _ = lstm(embed(tokens))
    logits = head(outputs[:, -1])              # reads padding, except in the longest row
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
    must change by less than 1/50 of the change without padding. The standard deviation of the predictions across
    the most heavily padded rows must also be below this limit. These are the rows with at least half as much
    padding as the row with the most.

    If vectors are averaged, at least one row in the batch must have no padding. Removing the padding must affect
    at least 2 of the padded rows, and at least 10% of them: a row is affected if its predicted class changes, or
    if its prediction (or mean vector) changes by more than half the standard deviation across rows.

    ## Known problems
    Models that return a vector for each position are checked only in a plain PyTorch loop, and only for a mean
    over the positions. The rule assumes that an evaluation averages in the same way as training. Padding at the
    start is not checked, because the words then come last.

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
            "barely on the words.",
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

    @check
    def from_mean(self, dependence: DependenceFacts, graph: LossGraph) -> Finding | None:
        """Look for a mean over the positions of padded rows, of a model that gets a mask."""
        shape = _averaged(graph)
        if shape is None or not dependence.trained:
            raise NotApplicable
        pooled, padding = dependence.pooled, dependence.padding
        if pooled is not None and pooled.width != shape[-1]:
            raise NotApplicable
        of = f"The loss averages vectors of shape {shape} over axis 1, and this mean includes padding: "
        if pooled is not None:
            if pooled.changed < max(MIN_CHANGED, MIN_SHARE * pooled.rows):
                return None
            return self.found(
                f"{of}the model gets a padding mask, but the mean does not use it. In "
                f"{'an evaluation' if pooled.evaluated else 'a training'} batch with up to {pooled.longest} "
                f"positions of padding, removing the padding changes the mean for {pooled.changed} of "
                f"{pooled.rows} padded rows by more than half the standard deviation across rows "
                f"({pooled.spread:.2g}). So the vector for a row depends on the lengths of the other rows in its "
                "batch.",
                fix={"torch": POOL},
                evidence={
                    "rows": pooled.rows,
                    "changed": pooled.changed,
                    "longest": pooled.longest,
                    "change": pooled.change,
                    "spread": pooled.spread,
                    "evaluated": pooled.evaluated,
                    "shape": list(shape),
                },
            )
        removed = None if padding is None or not padding.masked or not padding.some_full else padding.removed
        if padding is None or removed is None or removed.moved:
            raise NotApplicable
        if removed.changed < max(MIN_CHANGED, MIN_SHARE * removed.rows):
            return None
        return self.found(
            f"{of}the model gets a padding mask, but the mean does not use it. {changed_predictions(removed)}So "
            "the prediction for a row depends on the lengths of the other rows in its batch.",
            fix={"torch": POOL},
            evidence={
                "rows": removed.rows,
                "changed": removed.changed,
                "longest": padding.longest,
                "change": removed.change,
                "spread": removed.spread,
                "shape": list(shape),
            },
        )


def _averaged(graph: LossGraph) -> Shape | None:
    """Return the shape (rows, positions, numbers) of what is averaged over its positions, as it was computed."""
    for node in graph.nodes:
        if node.operation != "Mean" or len(node.trained) != 1:
            continue
        ((given, operand),) = node.trained
        sizes = known_sizes(operand.shape)
        over_positions = len(sizes) == 3 and node.shape == (sizes[0], sizes[2]) and sizes[1] > 1
        if over_positions and given < len(graph.nodes) and not _puts_in(graph.nodes[given]):
            return sizes
    return None


def _puts_in(node: Node) -> bool:
    """Return whether an operation may have multiplied padding by zero, or put something else in its place."""
    if node.operation == "Mul":
        return any(one.shape is None or len(one.shape) > 1 for one in node.constants)
    return node.operation in PUTS_IN
