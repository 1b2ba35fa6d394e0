"""See `StatisticsNotCopied`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.calls import ObjectLedger
from diagnostics.text.join import count_of, layers_named

SHOWN = 3  # layers named in the message


class StatisticsNotCopied(Rule):
    """An average of the weights is evaluated with batch norm's initial running statistics.

    ## What it does
    Looks for instances of the trained model's class that are evaluated but not trained, such as an exponential
    moving average of its weights. Reports such an instance if each of its batch norm layers still has a running
    mean of 0 and a variance of 1, while the statistics of the trained model have changed.

    ## Why it is bad
    `parameters()` yields the weights of batch norm, but not its running mean and variance, which are buffers. In
    evaluation, the averaged model normalises with a mean of 0 and a variance of 1, so averaging the weights seems
    to make the model worse.

    ## Example
    ```python
    for average, weight in zip(ema.parameters(), model.parameters()):
        average.mul_(0.999).add_(weight, alpha=0.001)
    ema.eval()
    ```

    ## Instead
    ```python
    for average, weight in zip(ema.parameters(), model.parameters()):
        average.mul_(0.999).add_(weight, alpha=0.001)
    for average, buffer in zip(ema.buffers(), model.buffers()):
        average.copy_(buffer)
    ema.eval()
    ```

    ## Thresholds
    The trained model's statistics must have been updated on at least 20 batches. In the evaluated instance, all
    running means must be exactly 0 and all variances exactly 1. The weights of this instance must be closer to the
    trained weights than the initial weights are.

    ## Known problems
    An averaged model that is created after the first few steps, or copied from a pretrained model, is not
    reported, although its statistics are stale.

    ## Sources
    CuriousAI/mean-teacher, issue 9; pytorch/ignite, issue 2590; FlyreelAI/sesemi, issue 36; the documentation for
    `torch.optim.swa_utils.AveragedModel` and `update_bn`.
    """

    severity = "warning"
    causes = ("evaluation-at-chance", "evaluation-mismatch", "constant-predictions")

    @check
    def from_evaluation(self, ledger: ObjectLedger) -> Finding:
        """Report an average whose statistics were never copied."""
        layers = ledger.stale_layers
        if not layers:
            raise NotApplicable
        one = len(layers) == 1
        return self.found(
            f"The evaluated {ledger.name} has weights that were averaged or copied from the trained model, but "
            f"it lacks that model's running statistics. {count_of(len(layers), 'batch norm layer')} "
            f"({layers_named(layers, most=SHOWN)}) still {'has' if one else 'have'} mean 0 and variance 1, "
            f"although the trained model has updated its statistics over {ledger.batches:,} batches. "
            "`parameters()` does not include running statistics.",
            fix=(
                "for average, buffer in zip(ema.buffers(), model.buffers()): average.copy_(buffer)",
                "use torch.optim.swa_utils.AveragedModel(model), which copies the buffers too",
            ),
            evidence={"model": ledger.name, "layers": list(layers), "batches": ledger.batches},
        )
