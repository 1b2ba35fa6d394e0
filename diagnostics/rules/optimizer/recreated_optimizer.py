"""See `RecreatedOptimizer`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.calls import ObjectLedger


class RecreatedOptimizer(Rule):
    """The optimizer is re-created for each step and loses its state.

    ## What it does
    For each model that a script trains, the rule counts the optimizers that took only one step before they were
    replaced with another one for the same parameters.

    ## Why it is bad
    An optimizer stores momentum or Adam's running averages, and a new one starts without them. A new Adam
    optimizer moves each weight by the full learning rate in its first step, however small the gradient is, and
    momentum never builds up. The loss falls at first, but then the weights jump around the minimum.

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
    At least 20 consecutive steps must each have been taken by a new optimizer. Plain SGD, which keeps no state, is
    not reported. A model whose weights are restored or reloaded between steps, as in test-time adaptation, is not
    reported.

    ## Known problems
    An optimizer that is re-created once per epoch or every few steps is not reported.

    ## Sources
    Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2015), section 2.1; forum questions about training
    functions that create their own optimizer.
    """

    severity = "warning"
    causes = ("loss-oscillation", "loss-plateau", "not-learning")

    @check
    def from_steps(self, ledger: ObjectLedger) -> Finding:
        """Report optimizers that make one step each."""
        if not ledger.lone_steps:
            raise NotApplicable
        return self.found(
            f"A new {ledger.optimizer} optimizer was created for each step, {ledger.lone_steps} times in a row. "
            "Each one started without the running averages of the previous steps, which are the optimizer's only "
            "advantage over plain gradient descent. Without these averages, an Adam step moves each weight by the "
            "full learning rate, however small its gradient.",
            fix=f"optimizer = {ledger.optimizer}(model.parameters(), ...)  # once, before the loop",
            evidence={"optimizer": ledger.optimizer, "times": ledger.lone_steps},
        )
