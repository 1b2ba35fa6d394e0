"""See `UnusedInput`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.dependence import DependenceFacts
from diagnostics.text.join import listed

OF_ONE_STEP = ("ignores-input", "symmetric-initialization")  # attention to one step has no use for its queries


class UnusedInput(Rule):
    """One of the model's inputs has no effect on any prediction.

    ## What it does
    Runs a copy of the model on a few examples of one batch, and replaces one input at a time with the same input
    from other examples. An input that does not change a single bit of any prediction is tested again in training
    mode, and with different weights.

    ## Why it is bad
    The model cannot use the information in that input. A `concat` may contain one variable twice and the other not
    at all, or a mask may never reach the attention layer. The model may also use only the output at the first
    position of a sequence, as with BERT's `[CLS]`. With causal attention or a recurrent layer, that output has
    seen only the first token.

    ## Example
    ```python
    def forward(self, question, answer):
        left, right = self.left(question), self.right(question)
        return self.head(torch.cat([left, right], dim=1))
    ```

    ## Instead
    ```python
    def forward(self, question, answer):
        left, right = self.left(question), self.right(answer)
        return self.head(torch.cat([left, right], dim=1))
    ```

    ## Thresholds
    The predictions must stay the same, bit for bit, and at least one other input must have an effect. An input is
    also reported if only its value for the first example affects the predictions.

    If the model makes one prediction for a sequence of at least 4 time steps, the rule also tests the time steps:
    it replaces all except the first and, with recurrent layers, all except the last.

    ## Known problems
    An input that is ignored on purpose, as in an ablation, is reported; in that case, ignore the rule. The rule
    tests only inputs that are named arguments of the model's `forward` and differ between examples. It tests
    neither labels nor the entries of a batch that is passed as a dict.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "use backprop to chart dependencies".
    """

    severity = "warning"
    causes = ("unreached-parameters", "examples-mixed", *NO_LEARNING)

    def explains(self, cause: Finding, finding: Finding) -> bool | None:
        """A model that uses one step makes the same prediction for all rows if these begin with the same token."""
        of_steps = cause.rule == self.name and "steps" in cause.evidence
        return True if of_steps and finding.rule in OF_ONE_STEP else None

    @check
    def from_answers(self, dependence: DependenceFacts) -> Finding | None:
        """Compare the predictions before and after replacing each input."""
        if _of_one_step(dependence):
            return None  # an input that adds nothing to that step, such as a mask, follows from it
        changes = dependence.inputs
        if len(changes) < 2:
            raise NotApplicable(dependence.why_not.get("inputs", "needs two inputs that differ between examples"))
        unused = [name for name, change in changes.items() if change == 0]
        used = {name: change for name, change in changes.items() if name not in unused}
        if not used:
            raise NotApplicable("needs an input that affects a prediction")
        if not unused and dependence.of_first:
            return self._of_first(dependence.of_first)
        if not unused:
            return None
        names = listed([_named(name) for name in unused])
        most = max(used, key=lambda name: used[name])
        return self.found(
            f"No prediction depends on the model's {'input' if len(unused) == 1 else 'inputs'} {names}: replacing "
            f"{'it' if len(unused) == 1 else 'them'} with the values from other examples does not change a single "
            f"bit of the predictions, but replacing {_named(most)} changes them by up to {used[most]:.2g}. Look "
            "for a variable that is used twice, or not at all.",
            fix=f"use {names} in the model, or remove {'it' if len(unused) == 1 else 'them'} from its arguments",
            evidence={"unused": unused, "changes": dict(changes)},
        )

    @check
    def from_steps(self, dependence: DependenceFacts) -> Finding | None:
        """Look for a sequence model whose predictions depend only on the first step or the last."""
        if not _of_one_step(dependence):
            return None
        steps = dependence.first_step_of
        if steps is None:
            return None if dependence.last_step_of is None else self._of_last(dependence.last_step_of)
        return self.found(
            f"The model reads sequences of {steps} steps from first to last, but its predictions depend only on "
            "the first step: replacing all later steps does not change a single bit of any prediction. The model "
            "uses the output at the first step, where a recurrent layer or causal attention has not seen the "
            "later steps yet.",
            fix=(
                "use the output at the last step: out[:, -1] with batch_first=True, else out[-1]",
                "for sequences padded on the right, use the output at the last real step of each: "
                "out[torch.arange(len(out)), lengths - 1]",
                "in a recurrent network, use the last hidden state, h[-1], and pack padded sequences with "
                "pack_padded_sequence",
            ),
            evidence={"steps": steps},
        )

    def _of_last(self, steps: int) -> Finding:
        return self.found(
            f"The model reads sequences of {steps} steps, but its predictions depend only on the last step: "
            "replacing all earlier steps does not change a single bit of any prediction. A hidden state that is "
            "recreated at each step, or left out of the call, forgets the earlier steps.",
            fix=(
                "h = cell(x[:, t], h)  # with h set to zeros once, before the loop",
                "pass the last state to each call: out, state = rnn(x[:, t : t + 1], state)",
            ),
            evidence={"steps": steps},
        )

    def _of_first(self, names: tuple[str, ...]) -> Finding:
        shown = listed([_named(name) for name in names])
        one = len(names) == 1
        return self.found(
            f"The model uses only the first example's value of its {'input' if one else 'inputs'} {shown}: "
            "replacing the values of all other examples does not change a single bit of any prediction. The first "
            "value is broadcast over the batch, so every example uses it.",
            fix=f"in the model, look for [0], [:1] or expand() on {shown}, and use each example's own value",
            evidence={"of_first": list(names)},
        )


def _of_one_step(dependence: DependenceFacts) -> bool:
    """Return whether a sequence model uses one step; a layer that runs along the batch has no other steps."""
    alone = dependence.first_step_of is not None or dependence.last_step_of is not None
    return alone and dependence.mixing is None


def _named(name: str) -> str:
    return f"number {name}" if name.isdigit() else repr(name)
