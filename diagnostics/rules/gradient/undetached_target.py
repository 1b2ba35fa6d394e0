"""See `UndetachedTarget`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.loss import BootstrappedTarget


class UndetachedTarget(Rule):
    """The target of a Q-learning loss is computed with the trained weights and is not detached.

    ## What it does
    In the graph of the first loss, looks for a squared error of selected predictions (`q.gather(...)`) whose
    target is a reward plus a discounted prediction (`r + gamma * q_next.max(...)`) with a path to the same
    weights.

    ## Why it is bad
    Q-learning moves the prediction towards its target and treats the target as a constant. With a gradient through
    both, half of each step moves the target towards the prediction instead: values of later states are pulled
    towards those of earlier ones, and rewards spread slowly and wrongly. Often the target network is, by mistake,
    the trained network itself instead of a copy, so the target also moves with every step.

    ## Example
    ```python
    target_net = policy_net  # one network under two names
    target = reward + gamma * target_net(next_state).max(1)[0]
    ```

    ## Instead
    ```python
    target_net = copy.deepcopy(policy_net)
    with torch.no_grad():
        target = reward + gamma * target_net(next_state).max(1)[0]
    ```

    ## Thresholds
    The prediction is selected from several. The target is the highest or a selected prediction of each row, times
    one number and plus another. At least one parameter is in the graph of both.

    ## Known problems
    Residual gradient methods differentiate the target on purpose. A separate target network that is not detached
    is not reported: its gradients reach no optimizer.

    ## Sources
    Mnih et al., "Human-level control through deep reinforcement learning" (2015), methods: the target is held
    fixed; Baird, "Residual Algorithms" (1995); datawhalechina/easy-rl, pull request 117, on a target network that
    was the trained network itself.
    """

    severity = "warning"
    causes = ("loss-plateau", "not-learning", "loss-oscillation")

    @check
    def from_graph(self, target: BootstrappedTarget) -> Finding:
        """Report a target that is differentiated with its prediction."""
        which = "the highest prediction" if target.best else "a chosen prediction"
        return self.found(
            f"The target of the squared error is a reward and {which} for the next state, and its gradient "
            f"flows into the {target.weights} parameters that the trained predictions come from: each step also "
            "moves the target towards the prediction. Is the target network the trained network under another "
            "name?",
            fix=(
                "target_net = copy.deepcopy(policy_net)  # then load_state_dict every few steps",
                "with torch.no_grad(): target = reward + gamma * target_net(next_state).max(1)[0]",
            ),
            evidence={"best": target.best, "weights": target.weights},
        )
