"""See `UnbatchableExample`."""

from __future__ import annotations

from diagnostics.engine.message_rule import MessageRule


class UnbatchableExample(MessageRule):
    """A value in the dataset cannot be batched, or a mapping changes the number of rows.

    ## What it does
    Recognises errors raised by PyTorch's default collate function and by `Dataset.map`, and names the class or
    column that causes them.

    ## Why it is bad
    The default collate function stacks tensors, arrays and numbers; it cannot stack None, PIL images or custom
    objects. If a batched function passed to `Dataset.map` returns more rows than it received, all columns that it
    does not return are too short.

    ## Example
    ```python
    def __getitem__(self, index):
        if self.paths[index].exists():
            return load(self.paths[index])         # None for a missing file
    ```

    ## Instead
    ```python
    self.paths = [path for path in paths if path.exists()]
    ```

    ## Thresholds
    None: the rule fires only after batching or mapping has failed.

    ## Known problems
    The message does not show which example causes the error.

    ## Sources
    The documentation for `torch.utils.data.default_collate` and `datasets.Dataset.map` ("Batch mapping").
    """

    severity = "error"
