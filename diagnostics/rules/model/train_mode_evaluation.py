"""See `TrainModeEvaluation`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding, Severity
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.calls import TrainingModeCalls
from diagnostics.facts.course import Verdicts
from diagnostics.facts.dependence import ActiveDropout, DependenceFacts
from diagnostics.facts.layers import TrainModeFacts
from diagnostics.facts.training import EvaluationHistory, NoGradHistory, PredictionFacts, StepHistory
from diagnostics.text.join import count_of, layers_named

STEPS = 20
ROWS = 32  # in calls of a fitted Keras model; fewer may be a look at a few examples
ROUNDS = 2  # of passes without gradients, between steps
SELDOM = 0.2  # rounds per step; passes that belong to training, as for pseudo-labels, occur at every step
MOSTLY = 0.9  # of the passes without gradients
NAMED = 3
MIN_CHANGE = 1e-4  # of the predictions' spread: a change that rounding errors do not explain
MUCH = 0.05  # of the spread: a change that shows in a metric


class TrainModeEvaluation(Rule):
    """The evaluation uses dropout or batch norm in training mode, or random initial states.

    ## What it does
    In a watched run, the rule treats forward passes without gradients between training steps as an evaluation, and
    checks whether the model is in training mode during these passes. After the run, it calls a copy of the model
    in evaluation mode twice with the same inputs, to find functions such as `F.dropout` that ignore the model's
    mode. It also checks whether the forward pass gives a recurrent layer a random initial state.

    In Keras, it counts the script's own calls of the form `model(x, training=True)` after `fit`.

    ## Why it is bad
    In training mode, dropout drops units, so the metrics are pessimistic and differ from run to run. Batch norm
    normalises with batch statistics, so a prediction depends on the other examples. Batch norm also updates its
    running statistics with the evaluation data, which leaks that data into the model.

    ## Example
    ```python
    with torch.no_grad():                       # saves memory, but does not change the mode
        accuracy = evaluate(model, validation)
    ```

    ## Instead
    ```python
    model.eval()
    with torch.no_grad():
        accuracy = evaluate(model, validation)
    model.train()

    F.dropout(x, 0.5, training=self.training)   # within the model, or nn.Dropout(0.5)
    output, _ = self.lstm(x)  # not (x, (torch.randn(...), torch.randn(...)))
    ```

    ## Thresholds
    The run must have at least 20 steps. Forward passes without gradients must follow at least 2 of these steps,
    but at most 20% of them. At least 90% of these passes must be in training mode.

    In Keras, the calls with `training=True` must cover at least 32 rows in total. They are not reported if a call
    in inference mode, `evaluate`, `predict` or `fit` follows, because their purpose may have been to recalibrate
    batch norm. Calls under a `tf.GradientTape` are ignored. The finding is a note if the same input was passed
    several times.

    In PyTorch, the finding is a warning if one of these conditions holds, and otherwise a note:

    - The model has batch norm.
    - Every forward pass in the evaluations had a different input.
    - The loop computed an evaluation loss without gradients, or passed one to `watch.evaluated(loss)`.

    Without such a loss, the finding is always a note if each evaluation is a single pass over at most as many rows
    as a training batch has.

    Functional dropout is reported if it changes the predictions, and if its `training` argument is missing or
    evaluates to true in evaluation mode. The finding is a warning if the argument is missing and there were passes
    in evaluation mode, each with a different input. A literal `training=True` is treated as intentional, and so is
    dropout applied to the model's inputs.

    An initial state that is sampled in each forward pass, as in `torch.randn(layers, batch, hidden)`, is reported.
    The finding is a warning if the loss compares the predictions with a target and a new sample changes a
    prediction by more than 5% of the spread of the predictions across examples.

    ## Known problems
    Monte Carlo dropout, which evaluates in training mode on purpose, is reported as a note, or as a warning if the
    model has batch norm. Passes that recalibrate the batch norm statistics are reported if they occur twice,
    unless `update_bn` runs them.

    ## Sources
    PyTorch's "Autograd mechanics", "Evaluation Mode (nn.Module.eval())" (no_grad and eval are independent of each
    other), and its documentation for `torch.nn.functional.dropout` and `scaled_dot_product_attention`; Gal and
    Ghahramani, "Dropout as a Bayesian Approximation" (2016).
    """

    severity = "warning"

    @check
    def from_modes(
        self,
        steps: StepHistory,
        no_grad: NoGradHistory,
        modes: TrainModeFacts,
        evaluations: EvaluationHistory | None = None,
        answers: PredictionFacts | None = None,
    ) -> Finding | None:
        """Count the passes without gradients that ran in training mode."""
        if not modes.layers:
            return None
        passes, rounds = no_grad.passes, no_grad.rounds
        others_differ = rounds < ROUNDS or no_grad.passes_in_training_mode < MOSTLY * passes
        evaluates = no_grad.last_passes > 1 or answers is not None
        if steps.total_steps >= STEPS and evaluates and others_differ and _is_final(no_grad, steps):
            return self._after_the_last_step(no_grad, modes)
        if steps.total_steps < STEPS or rounds < ROUNDS:
            raise NotApplicable(
                f"needs at least {STEPS} steps, and forward passes without gradients after at least {ROUNDS} of "
                "them"
            )
        wrong = no_grad.passes_in_training_mode
        if rounds > SELDOM * steps.total_steps or wrong < MOSTLY * passes:
            return None
        handed_over = evaluations is not None
        largest = int(steps.batch_sizes.max(initial=0))
        samples = passes == rounds and 0 < no_grad.examples <= largest and not handed_over
        certain = any(modes.keeps_statistics) or no_grad.repeated is False
        count = f"All {passes:,}" if wrong == passes else f"{wrong:,} of the {passes:,}"
        return self._in_training_mode(
            f"{count} forward passes without gradients (in evaluations after {rounds:,} of the "
            f"{steps.total_steps:,} steps)",
            (passes, wrong),
            modes,
            "warning" if (certain and not samples) or handed_over else "note",
        )

    @check
    def from_calls(self, calls: TrainingModeCalls) -> Finding | None:
        """Look for an evaluation that calls a fitted Keras model in training mode."""
        if calls.rows < ROWS:
            return None
        named, statistics = layers_named(calls.layers, most=NAMED), any(calls.keeps_statistics)
        learns = ", and batch norm updated its statistics with this data" if statistics else ""
        return self.found(
            f"After training, the script called the model with training=True {count_of(calls.passes, 'time')} "
            f"(on {calls.rows:,} rows). In this mode, {named} {'behaves' if len(calls.layers) == 1 else 'behave'} "
            f"differently, so the predictions differ from those in inference mode{learns}.",
            fix=("model(x, training=False)", "model.predict(x)"),
            evidence={
                "passes": calls.passes,
                "rows": calls.rows,
                "repeated": calls.repeated,
                "mode_dependent_layers": list(calls.layers),
            },
            severity="note" if calls.repeated else None,
        )

    @check
    def from_functions(
        self, dependence: DependenceFacts, no_grad: NoGradHistory, verdicts: Verdicts
    ) -> Finding | None:
        """Look for functional dropout that is on in evaluation mode."""
        if dependence.noise is None:
            raise NotApplicable(dependence.why_not.get("dropout", "needs a copy of the model that can be run"))
        active = [one for one in dependence.dropout if one.told != "always"]
        if not active or not dependence.noise or self.name in verdicts.found:
            return None
        untold = [one for one in active if one.told == "nothing"]
        one = (untold or active)[0]
        others = len(active) - 1
        more = f" and in {count_of(others, 'other call')}" if others else ""
        evaluated = no_grad.passes - no_grad.passes_in_training_mode
        passes = f" (used in {evaluated:,} of the script's forward passes without gradients)" if evaluated else ""
        certain = bool(untold) and evaluated and no_grad.repeated_in_evaluation is False
        return self.found(
            f"In evaluation mode{passes}, the model still drops {one.rate:.0%} of the values in "
            f"`{one.function}`{more}: the same inputs give predictions that differ by up to "
            f"{dependence.noise:.2g} from call to call. {_why(one)}",
            fix=_FIXES.get(
                one.function, (f"F.{one.function}(x, p, training=self.training)", "use an nn.Dropout layer")
            ),
            evidence={
                "functions": [one.function for one in active],
                "rates": [one.rate for one in active],
                "change": dependence.noise,
                "passes_in_evaluation_mode": evaluated,
            },
            where=one.where,
            severity="warning" if certain else "note",
        )

    @check
    def from_states(self, dependence: DependenceFacts) -> Finding | None:
        """Look for a recurrent layer with a random initial state in evaluation mode."""
        drawn = dependence.random_state
        if drawn is None:
            raise NotApplicable(
                dependence.why_not.get("state", "needs a recurrent layer that is given an initial state")
            )
        if not drawn.change > MIN_CHANGE * drawn.spread:
            return None
        certain = drawn.has_target and drawn.change > MUCH * drawn.spread
        return self.found(
            f"The initial state of {drawn.layer} is drawn with `{drawn.function}` in each forward pass, even in "
            f"evaluation mode. So the same inputs give predictions that differ by up to {drawn.change:.2g} from "
            "call to call. For comparison, the predictions for different examples have a standard deviation of "
            f"{drawn.spread:.2g}.",
            fix="torch.zeros(num_layers, batch, hidden)  # or pass no state: zeros are the default",
            evidence=vars(drawn),
            severity="warning" if certain else "note",
        )

    def _after_the_last_step(self, no_grad: NoGradHistory, modes: TrainModeFacts) -> Finding:
        passes = no_grad.last_passes
        certain = any(modes.keeps_statistics) or no_grad.repeated is False
        return self._in_training_mode(
            f"The last {passes:,} forward passes without gradients (after the last step)"
            if passes > 1
            else "The last forward pass without gradients (after the last step)",
            (passes, passes),
            modes,
            "warning" if certain else "note",
        )

    def _in_training_mode(
        self, which: str, counts: tuple[int, int], modes: TrainModeFacts, severity: Severity
    ) -> Finding:
        named = layers_named(modes.layers, most=NAMED)
        some = "a layer" if len(modes.layers) == 1 else "some layers"
        behave = "behaves" if len(modes.layers) == 1 else "behave"
        statistics = any(modes.keeps_statistics)
        learns = ", and batch norm updated its statistics with this data" if statistics else ""
        return self.found(
            f"{which} ran in training mode, in which {some} ({named}) {behave} differently. So the metrics "
            f"do not reflect the model in evaluation mode{learns}. torch.no_grad() does not change the mode.",
            fix="model.eval()  # before evaluation; afterwards model.train()",
            evidence={
                "passes": counts[0],
                "passes_in_training_mode": counts[1],
                "mode_dependent_layers": list(modes.layers),
            },
            severity=severity,
        )


_FIXES = {
    "scaled_dot_product_attention": (
        "F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0)"
    ),
}


def _why(one: ActiveDropout) -> str:
    if one.function == "scaled_dot_product_attention":
        return "This function applies `dropout_p` in every mode."
    if one.told == "nothing":
        return "The function does not know the model's mode: it drops values unless the call turns dropout off."
    return "The call asks for training mode: is it in a module that model.eval() does not reach?"


def _is_final(no_grad: NoGradHistory, steps: StepHistory) -> bool:
    """Return whether the last passes were made after the last step, in training mode."""
    return no_grad.last_in_training_mode and no_grad.last_step == steps.total_steps
