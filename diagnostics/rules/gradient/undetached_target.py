"""See `UndetachedTarget`."""

from __future__ import annotations

from collections.abc import Iterator

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.loss_graph import LEAF, LossGraph

ERRORS = ("MseLoss", "SmoothL1Loss", "HuberLoss", "Sub")
LAID_OUT = ("Squeeze", "Unsqueeze", "View", "Expand", "Cast")
CHOSEN = ("Gather", "Index")  # one prediction of each row: that of the action taken
BEST = "Max"


class UndetachedTarget(Rule):
    """The target of a Q-learning loss is computed with the trained weights and is not detached.

    ## What it does
    In the graph of the first loss, the rule looks for a squared error between selected predictions
    (`q.gather(...)`) and a target with a gradient path to the same weights. The target must be a reward plus a
    discounted prediction (`r + gamma * q_next.max(...)`).

    ## Why it is bad
    Q-learning moves the prediction towards its target and treats the target as a constant. If the gradient also
    flows through the target, half of each step moves the target towards the prediction, and rewards propagate
    slowly and incorrectly. Often the target network is not a copy but, by mistake, the trained network itself.

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
    Each prediction must be selected from several outputs. The target must be a multiple of the highest prediction
    in each row, or of a selected prediction, plus another term. Prediction and target must depend on at least one
    common parameter.

    ## Known problems
    Residual gradient methods, which differentiate the target on purpose, are reported. A separate target network
    that is not detached is not reported, because no optimizer uses its gradients.

    ## Sources
    Mnih et al., "Human-level control through deep reinforcement learning" (2015), "Methods", where the target is
    held fixed; Baird, "Residual Algorithms" (1995); datawhalechina/easy-rl, pull request 117, on a target network
    that was the trained network itself.
    """

    severity = "warning"
    causes = ("loss-plateau", "not-learning", "loss-oscillation")

    @check
    def from_graph(self, graph: LossGraph) -> Finding | None:
        """Report a target that is differentiated with its prediction."""
        targets = list(_bootstrapped(graph))
        if not targets:
            raise NotApplicable("needs a target computed by the model")
        weights, best = max(targets)
        if not weights:
            return None
        which = "the highest prediction" if best else "a prediction"
        return self.found(
            f"The target of the squared-error loss is a reward plus {which} for the next state. Gradients flow "
            f"through this target into the same {weights} parameters that produce the predictions, so each step "
            "also moves the target towards the prediction. Is the target network just another name for the "
            "trained network?",
            fix=(
                "target_net = copy.deepcopy(policy_net)  # then call load_state_dict() every few steps",
                "with torch.no_grad(): target = reward + gamma * target_net(next_state).max(1)[0]",
            ),
            evidence={"best": best, "weights": weights},
        )


def _bootstrapped(graph: LossGraph) -> Iterator[tuple[int, bool]]:
    """Yield the number of parameters that both sides of an error as in Q-learning depend on.

    One side is a chosen prediction. The other is a product and a sum with constants, a discount and a reward, of
    the best or a chosen prediction of each row, and each number comes with whether it is the best.
    """
    for node in graph.nodes:
        sides = [index for index, _ in node.trained]
        if node.operation not in ERRORS or len(sides) != 2:
            continue
        for prediction, target in (sides, sides[::-1]):
            chosen = graph.nodes[graph.source(prediction, LAID_OUT)]
            *through, last = graph.chain(target, (*LAID_OUT, "Add", "Mul"))
            source, factors = graph.nodes[last], {graph.nodes[step].operation for step in through}
            is_target = source.shape and source.operation in (BEST, "Gather") and factors >= {"Add", "Mul"}
            if chosen.operation in CHOSEN and is_target:
                common = graph.below(prediction) & graph.below(target)
                weights = sum(graph.nodes[index].operation == LEAF for index in common)
                yield weights, source.operation == BEST
