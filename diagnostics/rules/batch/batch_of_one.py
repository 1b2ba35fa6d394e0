"""See `BatchOfOne`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.usage import BatchOfOneCrash


class BatchOfOne(MessageRule):
    """A batch norm layer in training mode got a batch with one value per channel.

    ## What it does
    Recognises the error, and reads the shape of the input from it.

    ## Why it is bad
    Batch norm subtracts the mean of the batch and divides by its standard deviation. One value is its own mean:
    the output would be 0 whatever the input was. The usual batch of one is the last of an epoch: 1,025 examples
    in batches of 32 leave one over. It also happens in a forward pass on one example without `model.eval()`.

    ## Example
    ```python
    loader = DataLoader(dataset, batch_size=32, shuffle=True)                    # len(dataset) % 32 == 1
    ```

    ## Instead
    ```python
    loader = DataLoader(dataset, batch_size=32, shuffle=True, drop_last=True)
    ```

    ## Thresholds
    None: it is found only after the layer has refused.

    ## Known problems
    Whether this was the last batch of an epoch or a single example is not known from the message.

    ## Sources
    The documentation of `torch.nn.BatchNorm1d` and of `torch.utils.data.DataLoader` (`drop_last`).
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: BatchOfOneCrash) -> Finding | None:
        """Say what the layer got."""
        shape = "" if symptom.shape is None else f" of shape {symptom.shape}"
        return self.found(
            f"A normalization layer in training mode got an input{shape}, which has one value per channel. It "
            "cannot compute a variance from one value. The likely batch is the last one of an epoch, or a single "
            "example without model.eval().",
            fix=(
                "DataLoader(..., drop_last=True) for training",
                "model.eval(), before a forward pass on single examples",
                "a batch size above 1, or nn.GroupNorm, which does not depend on the batch",
            ),
            evidence={"shape": None if symptom.shape is None else list(symptom.shape)},
            where=crash.where,
        )
