"""See `TrainModeEvaluation`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.training import EvaluationHistory, NoGradHistory, StepHistory, TrainModeFacts

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
    these passes in training mode. A warning if batch norm is among the layers, or if the loop passed an evaluation
    loss to `watch.evaluated(loss)`; otherwise a note. Also a note if each evaluation is a single pass of at most
    one training batch: that is how samples of a generator are drawn, often in training mode. All limits are ours.

    ## Known problems
    Monte Carlo dropout evaluates in training mode on purpose, to estimate uncertainty; without batch norm that is
    a note. All passes without gradients count as evaluation; passes that recalibrate batch norm's statistics are
    reported if they are made twice.

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
    ) -> Finding | None:
        """Count the passes without gradients that ran in training mode."""
        if not modes.layers:
            return None
        passes, rounds = no_grad.passes, no_grad.rounds
        if steps.total_steps < STEPS or rounds < ROUNDS:
            raise NotApplicable(f"needs {STEPS} steps, and passes without gradients after {ROUNDS} of them")
        wrong = no_grad.passes_in_training_mode
        if rounds > SELDOM * steps.total_steps or wrong < MOSTLY * passes:
            return None
        handed_over = evaluations is not None
        largest = int(steps.batch_sizes.max(initial=0))
        samples = passes == rounds and 0 < no_grad.examples <= largest and not handed_over
        statistics = any(modes.keeps_statistics)
        others = len(modes.layers) - NAMED
        named = ", ".join(modes.layers[:NAMED]) + (f" and {others} more" if others > 0 else "")
        learns = ", and batch norm updated its statistics with this data" if statistics else ""
        return self.found(
            f"{wrong:,} of the {passes:,} forward passes without gradients, made after {rounds:,} of the "
            f"{steps.total_steps:,} steps, ran in training mode, in which {named} behave differently: the metrics "
            f"do not describe the model{learns}. torch.no_grad() does not change the mode.",
            fix="model.eval()  # before an evaluation, and model.train() after it",
            evidence={
                "passes": passes,
                "passes_in_training_mode": wrong,
                "mode_dependent_layers": list(modes.layers),
            },
            severity="warning" if (statistics and not samples) or handed_over else "note",
        )
