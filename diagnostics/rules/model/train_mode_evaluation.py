"""See `TrainModeEvaluation`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding, Severity
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.training import (
    EvaluationHistory,
    NoGradHistory,
    PredictionFacts,
    StepHistory,
    TrainModeFacts,
)

STEPS = 20
ROUNDS = 2  # of passes without gradients, between steps
SELDOM = 0.2  # rounds per step; passes that belong to training, as for pseudo-labels, come with every step
MOSTLY = 0.9  # of the passes without gradients
NAMED = 3


class TrainModeEvaluation(Rule):
    """Evaluation runs with dropout or batch norm in training mode.

    ## What it does
    In a watched run: checks the mode of the forward passes without gradients between training steps, as an
    evaluation makes them.

    ## Why it is bad
    In training mode dropout drops units, so the metrics are pessimistic and differ from run to run. Batch norm
    normalises by batch statistics, so a prediction depends on the other examples; and it updates its running
    statistics with the evaluation data, which leaks into the model.

    ## Example
    ```python
    with torch.no_grad():                       # saves memory, and changes no mode
        accuracy = evaluate(model, validation)
    ```

    ## Instead
    ```python
    model.eval()
    with torch.no_grad():
        accuracy = evaluate(model, validation)
    model.train()
    ```

    ## Thresholds
    At least 20 steps, and passes without gradients after at least 2 of them but at most after every fifth; 90% of
    these passes in training mode. Or the last passes, made after the last step, if they are several or the model
    is a classifier. A warning if batch norm is among the layers, if every pass had another input, or if the loop
    passed an evaluation loss to `watch.evaluated(loss)`; otherwise a note. Also a note if each evaluation is a
    single pass of at most one training batch: that is how samples of a generator are drawn, often in training
    mode. All limits are ours.

    ## Known problems
    Monte Carlo dropout evaluates in training mode on purpose, to estimate uncertainty; as the same inputs pass
    several times, that is a note without batch norm. All passes without gradients count as evaluation; passes that
    recalibrate batch norm's statistics, but for those of `update_bn`, are reported if they are made twice.

    ## Sources
    PyTorch's "Autograd mechanics", "Evaluation Mode (nn.Module.eval())" (no_grad and eval are independent of each
    other); Gal and Ghahramani, "Dropout as a Bayesian Approximation" (2016).
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
            raise NotApplicable(f"needs {STEPS} steps, and passes without gradients after {ROUNDS} of them")
        wrong = no_grad.passes_in_training_mode
        if rounds > SELDOM * steps.total_steps or wrong < MOSTLY * passes:
            return None
        handed_over = evaluations is not None
        largest = int(steps.batch_sizes.max(initial=0))
        samples = passes == rounds and 0 < no_grad.examples <= largest and not handed_over
        certain = any(modes.keeps_statistics) or no_grad.repeated is False
        return self._in_training_mode(
            f"{wrong:,} of the {passes:,} forward passes without gradients, made after {rounds:,} of the "
            f"{steps.total_steps:,} steps,",
            (passes, wrong),
            modes,
            "warning" if (certain and not samples) or handed_over else "note",
        )

    def _after_the_last_step(self, no_grad: NoGradHistory, modes: TrainModeFacts) -> Finding:
        passes = no_grad.last_passes
        certain = any(modes.keeps_statistics) or no_grad.repeated is False
        return self._in_training_mode(
            f"The last {passes:,} forward passes without gradients, made after the last step,"
            if passes > 1
            else "The last forward pass without gradients, made after the last step,",
            (passes, passes),
            modes,
            "warning" if certain else "note",
        )

    def _in_training_mode(
        self, which: str, counts: tuple[int, int], modes: TrainModeFacts, severity: Severity
    ) -> Finding:
        others = len(modes.layers) - NAMED
        named = ", ".join(modes.layers[:NAMED]) + (f" and {others} more" if others > 0 else "")
        behave = "behaves" if len(modes.layers) == 1 else "behave"
        statistics = any(modes.keeps_statistics)
        learns = ", and batch norm updated its statistics with this data" if statistics else ""
        return self.found(
            f"{which} ran in training mode, in which {named} {behave} differently: the metrics do not describe "
            f"the model{learns}. torch.no_grad() does not change the mode.",
            fix="model.eval()  # before an evaluation, and model.train() after it",
            evidence={
                "passes": counts[0],
                "passes_in_training_mode": counts[1],
                "mode_dependent_layers": list(modes.layers),
            },
            severity=severity,
        )


def _is_final(no_grad: NoGradHistory, steps: StepHistory) -> bool:
    """Whether the last passes were made after the last step, in training mode."""
    return no_grad.last_in_training_mode and no_grad.last_step == steps.total_steps
