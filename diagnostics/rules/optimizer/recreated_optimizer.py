"""See `RecreatedOptimizer`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.calls import RemadeOptimizer


class RecreatedOptimizer(Rule):
    """The optimizer is re-created for each step, and forgets what it has to remember.

    ## What it does
    Counts, for each model that a script trains, the optimizers that made one step and were replaced by another one
    for the same parameters.

    ## Why it is bad
    Momentum and the averages of Adam live in the optimizer. One that is re-created has none: each step of Adam
    moves each weight by the full learning rate, up or down, however small its gradient, and momentum never builds
    up. The loss falls at first, then the weights jump around the minimum. A schedule starts over, too.

    ## Example
    ```python
    for x, y in loader:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    ```

    ## Instead
    ```python
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    ```

    ## Thresholds
    20 steps in a row, each by another optimizer that keeps tensors as its state: plain SGD has none, and loses
    nothing. Test-time adaptation, which restores the weights before each step, is left alone: so is a model that
    loads weights in between. The number is ours.

    ## Known problems
    An optimizer re-created for each epoch, or for some steps, as for each task in meta-learning, is not reported.
    After the finding the steps of this model are not watched any more.

    ## Sources
    Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2015), section 2.1; public questions about
    training functions that make their optimizer.
    """

    severity = "warning"
    causes = ("loss-oscillation", "loss-plateau", "not-learning")

    @check
    def from_steps(self, optimizer: RemadeOptimizer) -> Finding:
        """Report optimizers that make one step each."""
        return self.found(
            f"A new {optimizer.name} was made for each step, {optimizer.times} times in a row. Each began without "
            "the averages of the steps before, which are all that it has over plain gradient descent: without "
            "them a step of Adam moves each weight by the full learning rate, however small its gradient.",
            fix=f"optimizer = {optimizer.name}(model.parameters(), ...)  # once, before the loop",
            evidence={"optimizer": optimizer.name, "times": optimizer.times},
        )
