"""See `FutureLeak`."""

from __future__ import annotations

from typing import Final

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.dependence import DependenceFacts

CLEAR = 1e-3  # of the spread of the predictions; a causal mask leaves rounding errors of about 1e-6

INVERTED: Final = (
    " Replacing the tokens before the predicted token does not change its prediction: the model reads in the "
    "wrong direction, as with an inverted mask."
)
TURNED: Final = {
    "torch": (
        "torch.triu(torch.ones(T, T), 1).bool()  # for nn.MultiheadAttention and encoders: True means masked out",
        "torch.tril(torch.ones(T, T)).bool()  # for scaled_dot_product_attention: True means attended to",
    ),
    "keras": (
        "attention_mask=np.tril(np.ones((1, T, T), bool))  # True means attended to",
        "replace the inverted mask with use_causal_mask=True (using both would mask every token)",
    ),
}


class FutureLeak(Rule):
    """A language model can see the token that it has to predict.

    ## What it does
    Finds the input whose next tokens are the targets of the loss. On a copy of the model in evaluation mode, the
    rule replaces one token and checks whether the prediction at the position before it changes. It then replaces
    all earlier tokens: if the prediction stays the same, the mask is inverted.

    ## Why it is bad
    A model that sees the next token learns to copy it: the loss falls far below what the language allows, and an
    evaluation with the same leak looks just as good. During generation there is no next token to copy, and the
    output is noise.

    ## Example
    ```python
    weights = query @ key.transpose(-2, -1)  # every position attends to every other
    hidden = weights.softmax(dim=-1) @ value
    ```

    ## Instead
    ```python
    weights = query @ key.transpose(-2, -1)
    weights = weights.masked_fill(tril[:T, :T] == 0, float("-inf"))
    hidden = weights.softmax(dim=-1) @ value
    ```

    ## Thresholds
    The prediction must change by more than 1/1000 of the spread of the predictions across positions. In a causal
    model, it changes only by rounding errors.

    ## Known problems
    The rule applies only if cross entropy is the whole loss and the targets are the next tokens of exactly one
    input. Models that may be autoencoders are not checked, because an autoencoder may read the whole text.

    ## Sources
    Vaswani et al., "Attention Is All You Need" (2017), section 3.2.3, on masking later positions; forum questions
    about models whose loss fell to 0 but whose samples were noise.
    """

    severity = "error"
    FIXES = {
        "torch": (
            'scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))  # before the softmax',
            "nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)",
            "encoder(x, mask=nn.Transformer.generate_square_subsequent_mask(T))",
            "use nn.LSTM(...) without bidirectional=True",
        ),
        "keras": (
            "MultiHeadAttention(...)(x, x, use_causal_mask=True)",
            "use LSTM(...) without the Bidirectional wrapper",
        ),
    }

    @check
    def from_answers(self, dependence: DependenceFacts) -> Finding | None:
        """Compare the prediction of a token before and after replacing that token."""
        future = dependence.future
        if future is None:
            raise NotApplicable(dependence.why_not.get("future", "needs a model that predicts the next token"))
        if not future.change > CLEAR * future.spread:
            return None
        inverted = future.past is not None and future.past <= CLEAR * future.spread
        shown = "the input" if future.input.isdigit() else f"the input {future.input!r}"
        return self.found(
            f"The targets are the next tokens of {shown}, but the model already sees these tokens. Replacing "
            f"the token at position {future.position + 1} of {future.length} changes the prediction of that "
            f"token, made at position {future.position}, by {future.change:.2g} (for comparison, "
            f"predictions at different positions differ by {future.spread:.2g}). The model learns to copy the "
            f"next token, and generates noise when there is no token to copy.{INVERTED if inverted else ''}",
            fix=TURNED if inverted else None,
            evidence={
                "past": future.past,
                "change": future.change,
                "spread": future.spread,
                "position": future.position,
                "length": future.length,
            },
        )
