"""See `UndetachedTarget`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.loss import BootstrappedTarget


class UndetachedTarget(Rule):
    """The target of a Q-learning loss is computed by the weights that are trained, and differentiated with them.

    ## What it does
    Looks, in the graph of the first loss, for a squared error of chosen predictions (`q.gather(...)`) whose target
    is a reward and a discounted prediction (`r + gamma * q_next.max(...)`) with a path to the same weights.

    ## Why it is bad
    Q-learning moves the prediction towards its target, and takes the target for a constant. With a gradient
    through both, half of each step moves the target towards the prediction instead: values of later states are
    pulled to those of earlier ones, and rewards spread slowly and wrongly. Often the target network is the trained
    one by mistake, and not a copy, which also makes the target move with every step.

    ## Example
    ```python
    target_net = policy_net                                     # one network with two names
    target = reward + gamma * target_net(next_state).max(1)[0]
    ```

    ## Instead
    ```python
    target_net = copy.deepcopy(policy_net)
    with torch.no_grad():
        target = reward + gamma * target_net(next_state).max(1)[0]
    ```

    ## Thresholds
    The prediction is chosen from several, the target is one number times the highest, or a chosen, prediction of
    each row plus another number, and one parameter at least is below both.

    ## Known problems
    Residual gradient methods differentiate the target on purpose. A target network of its own weights that is not
    detached is not reported: its gradients reach no optimizer.

    ## Sources
    Mnih et al., "Human-level control through deep reinforcement learning" (2015), methods: the target is held
    fixed; Baird, "Residual Algorithms" (1995); datawhalechina/easy-rl, pull request 117, of a target network that
    was the trained one.
    """

    severity = "warning"
    causes = ("loss-plateau", "not-learning", "loss-oscillation")

    @check
    def from_graph(self, target: BootstrappedTarget) -> Finding:
        """Report such a target."""
        which = "the highest prediction" if target.best else "a chosen prediction"
        return self.found(
            f"The target of the squared error is a reward and {which} for the next state, and its gradient flows "
            f"into the {target.weights} parameters that the trained predictions come from: each step moves the "
            "target towards the prediction, too. Is the target network the trained one under another name?",
            fix=(
                "target_net = copy.deepcopy(policy_net)  # then load_state_dict now and then",
                "with torch.no_grad(): target = reward + gamma * target_net(next_state).max(1)[0]",
            ),
            evidence={"best": target.best, "weights": target.weights},
        )
