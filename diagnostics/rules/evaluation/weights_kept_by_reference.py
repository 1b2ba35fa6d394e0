"""See `WeightsKeptByReference`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.calls import COLLECTED, ObjectLedger, RestoredWeights, RestoreFacts
from diagnostics.facts.written import WrittenPatterns
from diagnostics.text.join import count_of

SNAPSHOTS = 2  # a script that takes the weights again at another step expects copies
MIN_SELF_LOADS = 2  # one may be a test that the weights fit


class WeightsKeptByReference(Rule):
    """The weights that a script keeps for later are not a copy, so training continues to change them.

    ## What it does
    In a watched run, the rule checks at each `load_state_dict()` whether the loaded weights still share memory
    with the model, and how many steps the optimizer has taken since the script stored them. It also reports a
    module that reloads its own current weights (`a.load_state_dict(a.state_dict())`) while another module with the
    same layers is trained. The rule also covers state dicts that the script collects over several steps, for
    example in a list, without copying them. Such state dicts are usually averaged, as in federated learning, or
    compared.

    In the source code, the rule looks for a training loop that assigns the best model so far to a second name
    without copying it (`best_model = model`), or that stores the weights in a list or dict without copying them.

    ## Why it is bad
    `state_dict()` copies nothing: its tensors are the weights themselves. After the next step, the "best" weights
    are the latest weights, and loading them at the end restores nothing. You then evaluate the model from the last
    step, which is often overfitted. No error is raised.

    ## Example
    ```python
    if loss < best_loss:
        best_loss, best_weights = loss, model.state_dict()
    ...
    model.load_state_dict(best_weights)
    ```

    ## Instead
    ```python
    if loss < best_loss:
        best_loss, best_weights = loss, copy.deepcopy(model.state_dict())
    ...
    model.load_state_dict(best_weights)
    ```

    ## Thresholds
    The script must load the model's own weights at least one step after it stored them. If another model loads the
    weights, they must have been stored at two or more different steps. Collected state dicts are reported if the
    script holds at least 4 from different steps at the same time, and has dropped none since the first.

    ## Known problems
    Only `diagnose run` and `diagnose lint` read the source. If the branch does not also store the score that it
    compares, or if only a variable's name suggests that it is a model, the finding is a note.

    ## Sources
    PyTorch's tutorial "Saving and Loading Models" ("best_model_state = model.state_dict() returns a reference to
    the state and not its copy! You must serialize best_model_state or use best_model_state =
    deepcopy(model.state_dict())").
    """

    severity = "warning"

    @check
    def from_restores(self, restores: RestoreFacts) -> Finding | None:
        """Look for weights that changed between being taken and being used."""
        wrong = [one for one in restores.stale if one.by_itself or one.times_taken >= SNAPSHOTS]
        if not wrong:
            return self._collected(restores)
        first = wrong[0]
        between = first.used_after - first.taken_after
        since = (
            f"so the {count_of(between, 'step')} since then changed them too. {_effect(first)}"
            if between
            else (
                f"so the weights kept at {first.times_taken} different steps are all the same. The load changed "
                "nothing; in this run, the latest weights happen to be the right ones."
            )
        )
        evidence = {
            "taken_after": first.taken_after,
            "used_after": first.used_after,
            "times_taken": first.times_taken,
            "loads": restores.num_stale,
        }
        return self.found(
            f"`load_state_dict` got weights that `state_dict()` had returned {_after(first.taken_after)}. They "
            f"share the model's memory and are not a copy, {since}",
            fix=(
                "copy.deepcopy(model.state_dict())",
                "call torch.save(model.state_dict(), path), and load that file",
            ),
            evidence=evidence,
            where=first.where,
            step=max(0, first.used_after - 1),
        )

    def _collected(self, restores: RestoreFacts) -> Finding | None:
        if restores.held < COLLECTED:
            return None
        return self.found(
            f"The script holds the results of `state_dict()` from {restores.held} different steps, and all of "
            "them share the model's memory. They are not copies: each has the weights of the latest step. Their "
            "average is just these weights, and a comparison shows no change.",
            fix=(
                "states.append(copy.deepcopy(model.state_dict()))",
                "{name: value.clone() for name, value in model.state_dict().items()}",
            ),
            evidence={"held": restores.held},
            where=restores.where,
        )

    @check
    def from_self_loads(self, ledger: ObjectLedger) -> Finding:
        """Report a module that is loaded with its own weights, and never with those of the trained one."""
        if ledger.self_loads < MIN_SELF_LOADS:
            raise NotApplicable
        return self.found(
            f"`load_state_dict` was called {ledger.self_loads:,} times on a {ledger.name} with the result of its "
            "own `state_dict()`, which changes nothing. Another instance with the same layers is trained, but "
            "this one (a target network, for example) keeps its old weights.",
            fix="target.load_state_dict(policy.state_dict())  # from the trained network",
            evidence={"model": ledger.name, "times": ledger.self_loads},
            where=ledger.where,
        )

    @check
    def from_source(self, written: WrittenPatterns) -> Finding | None:
        """Look for a best model that is only a second name of the model in training."""
        first = written.first("kept_models")
        if first is None:
            return None
        kept, model = first.names
        return self.found(
            f"`{kept}` is assigned in the loop without being copied: it is `{model}` itself, which keeps "
            "training. After the loop, it has the weights of the last step, not the best ones.",
            fix=(
                f"{kept} = copy.deepcopy({model})",
                f'call torch.save({model}.state_dict(), "{kept.rpartition(".")[2]}.pt"), and load that file '
                "after the "
                "loop",
            ),
            evidence={"kept": kept, "model": model},
            where=first.where,
            severity=first.severity,
        )


def _after(steps: int) -> str:
    return f"after step {steps:,}" if steps else "before the first step"


def _effect(one: RestoredWeights) -> str:
    if one.by_itself:
        return (
            f"Loading changed none of the {count_of(one.tensors, 'parameter')}: the model still has the weights "
            f"from step {one.used_after:,}."
        )
    return (
        f"The model that loaded them has the weights from step {one.used_after:,}, not those from the time "
        "of that call."
    )
