"""See `BatchOfOne`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import check
from diagnostics.facts.layers import BatchNormSingleRow
from diagnostics.text.join import listed


class BatchOfOne(MessageRule):
    """A batch norm layer in training mode received a batch with one value per channel.

    ## What it does
    Recognises PyTorch's error and reads the input shape from the message. Keras raises no error, so if a Keras
    model is trained on single rows, the rule compares its predictions for two different rows in training mode.

    ## Why it is bad
    Batch norm subtracts the mean of the batch. A single value is its own mean, so the output would be 0 for any
    input. The batch of one is usually the last batch of an epoch: with batches of 32, 1,025 examples leave a last
    batch of one. The error also occurs if you run the model on one example without calling `model.eval()` first.

    ## Example
    ```python
    loader = DataLoader(dataset, batch_size=32, shuffle=True)  # len(dataset) % 32 == 1
    ```

    ## Instead
    ```python
    loader = DataLoader(dataset, batch_size=32, shuffle=True, drop_last=True)
    ```

    ## Thresholds
    None: the rule fires only if PyTorch has raised this error, or if the two predictions are bit-for-bit
    identical.

    ## Known problems
    The message does not show whether the batch was the last one of an epoch or a single example.

    ## Sources
    The documentation for `torch.nn.BatchNorm1d` and `torch.utils.data.DataLoader` (`drop_last`).
    """

    severity = "error"
    causes = ("evaluation-at-chance", "train-mode-evaluation", *NO_LEARNING)

    @check
    def from_single_rows(self, blind: BatchNormSingleRow) -> Finding:
        """Report a model trained on batches of one row, all of which look the same to it."""
        return self.found(
            f"Each batch has one row. In training mode, batch norm ({listed(blind.layers, most=3)}) subtracts "
            "the batch mean, which is the row itself, so its output is the same for every row. The model "
            "therefore makes the same prediction for every row and learns nothing from its inputs. The moving "
            "statistics that evaluation uses are still those of an untrained model.",
            fix=(
                "use larger batches: batch_size=32 in fit(), or .batch(32) on the dataset",
                "use keras.layers.LayerNormalization(), which does not depend on the batch",
            ),
            evidence={"layers": list(blind.layers)},
        )
