"""See `RecreatedModel`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.calls import ObjectLedger
from diagnostics.facts.written import WrittenPatterns

MIN_ROWS = 8  # fewer may be made up, to learn the shape of the output


class RecreatedModel(Rule):
    """The model is re-created, either in every epoch or for the evaluation.

    ## What it does
    Searches the script for a loop over epochs that creates a model, or re-initialises its weights with
    `apply(init_weights)` or `reset_parameters()`, and then trains it.

    In PyTorch, and in Keras on TensorFlow, the rule also looks for an evaluation after the last training step that
    uses an untrained instance of the model's class.

    ## Why it is bad
    Each new model starts from random weights. If the model is re-created in every epoch, everything learned in the
    previous epochs is lost, and the final model has been trained for only one epoch.

    ## Example
    ```python
    for epoch in range(20):
        model = build_model()
        model.fit(x, y, epochs=1)
    ```

    ## Instead
    ```python
    model = build_model()
    for epoch in range(20):
        model.fit(x, y, epochs=1)
    ```

    ## Thresholds
    A loop that loads or sets weights is not reported, nor is a loop over folds, seeds or settings.

    An evaluated instance is reported only if no weights were loaded into it and its weights are not correlated
    with those of the trained model. In PyTorch, the instance must be evaluated on at least 8 rows. Nothing is
    reported if the trained model is also evaluated after its last step, because the untrained model may then be a
    baseline.

    ## Known problems
    The model is recognised by the call that creates it, such as `Sequential` or `build_model`. If only the name of
    the loop variable suggests that the loop counts epochs, the finding is a note. Other loops are reported only if
    they re-initialise weights still held by an optimizer that was created before the loop.

    ## Sources
    Forum questions about losses that start over at each epoch.
    """

    severity = "warning"
    causes = ("evaluation-at-chance", *NO_LEARNING)

    @check
    def from_source(self, written: WrittenPatterns) -> Finding | None:
        """Report the first such loop."""
        first = written.first("recreated_models")
        if first is None:
            return None
        model, loop, what = first.names
        weights = what == "weights"
        does = "initialised" if weights else "created"
        return self.found(
            f"`{model}` is {does} and trained in the loop over `{loop}`. Each epoch begins with "
            f"{'' if weights else 'a new model and '}random weights, so everything learned in the previous epoch "
            "is lost.",
            fix=f"{'initialise' if weights else 'create'} `{model}` once, before the loop",
            evidence={"model": model, "loop": loop, "weights_alone": weights},
            where=first.where,
            severity=first.severity,
        )

    @check
    def from_evaluation(self, ledger: ObjectLedger) -> Finding:
        """Report the evaluation of an instance other than the trained one."""
        rows = ledger.untrained_rows
        if rows is not None and rows < MIN_ROWS:
            raise NotApplicable
        return self.found(
            f"The {ledger.name} evaluated after training is not the instance that was trained: it still has its "
            "random initial weights, and the trained model is never evaluated.",
            fix=(
                "evaluate the trained model: pass it to the evaluation instead of creating a second one",
                f"load the trained weights first: {ledger.loader}",
            ),
            evidence={"model": ledger.name, "rows": rows},
        )
