"""Evaluates the model that a learner's script has trained, by the evaluation of our solution.

`python -m bugs.zoo.learner.checking.exam FOLDER BEGIN SOLUTION ATTEMPT [EXAM]`, in a process of its own. What our
solution prepares is prepared: data, tokenizer, an untrained model. When the file BEGIN is there, that model gets
the weights of the learner's, and is evaluated by what follows our solution's training, or by the file EXAM. Where
the weights do not fit, because a fix has changed the architecture, the learner's script prepares the model as it
does before its own training.

So nothing that the learner's script prints, replaces or evaluates has a say in the result.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
import traceback
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from bugs.zoo.keeper.last_words import metrics
from bugs.zoo.learner.checking.exchange import MODEL, PRINTED, RESULT
from bugs.zoo.learner.checking.halves import Halves, halves
from bugs.zoo.learner.checking.observation import Observation, weights_of

WAIT_S = 0.05  # between two looks
SHOWN = 2  # weights that differ

Weights = dict[str, "np.ndarray[Any, Any]"]


class CannotExamine(Exception):
    """The model cannot be evaluated; `str()` says why, to the learner."""


def main(arguments: list[str]) -> int:
    """Evaluate, write `exam.json`, and return 0."""
    folder, begin, solution, attempt = (Path(argument) for argument in arguments[:4])
    own = Path(arguments[4]) if len(arguments) > 4 else None
    result: dict[str, Any] = {"metrics": {}, "problem": None, "as": None, "differs": [], "on_trained": 0.0}
    try:
        result.update(_examine(folder, begin, solution, attempt, own))
    except CannotExamine as reason:
        result["problem"] = str(reason)
    (folder / RESULT).write_text(json.dumps(result), "utf-8")
    return 0


def _examine(folder: Path, begin: Path, solution: Path, attempt: Path, own: Path | None) -> dict[str, Any]:
    observation = Observation()
    observation.begin()
    ours, said = _prepared(solution), io.StringIO()
    while not begin.exists():  # the script still trains
        time.sleep(WAIT_S)
    with np.load(folder / MODEL) as saved:
        trained = set(saved["trained"].tolist())
        weights = {name[7:]: saved[name] for name in saved.files if name.startswith("weight ")}
    ours["PRINTED"] = json.loads((folder / PRINTED).read_text("utf-8"))
    model, whose = _model_of(ours), "ours"
    differs = [] if model is None else _differences(weights_of(model), weights)
    if model is None or not _takes(model, weights):
        model, whose = _learners_model(attempt, weights), "yours"
        ours["model"] = model
        if "trainer" in ours:
            ours["trainer"].model = ours["trainer"].model_wrapped = model
    before = len(observation.evaluated.digests)
    after = _halves(solution).after if own is None else (compile(own.read_text("utf-8"), own, "exec"),)
    with contextlib.redirect_stdout(said):
        for statement in after:
            _run(statement, ours)
    observation.end()
    on_trained = observation.evaluated.share_in(trained) if len(observation.evaluated.digests) > before else 0.0
    return {"metrics": metrics(said.getvalue()), "as": whose, "differs": differs, "on_trained": on_trained}


def _prepared(script: Path) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "__main__", "__file__": str(script)}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(_halves(script).before, space)
    return space


def _halves(script: Path) -> Halves:
    cut = halves(script.read_text("utf-8"), str(script))
    if cut is None:
        raise CannotExamine(
            "the model differs from ours, and no statement at the top level of your script trains it, so "
            "the check cannot build it again: keep model and training outside of functions"
        )
    return cut


def _run(statement: CodeType, space: dict[str, Any]) -> None:
    try:
        exec(statement, space)
    except Exception:  # it tells of the training, of which there was none here
        traceback.print_exc()


def _model_of(space: dict[str, Any]) -> Any:
    trainer = space.get("trainer")
    if trainer is not None:
        return getattr(trainer, "model", None)
    if "model" not in space and callable(space.get("build_model")):  # a script of ranks, each of which builds it
        space["model"] = space["build_model"]()
    return space.get("model")


def _takes(model: Any, weights: Weights) -> bool:
    """Give a model the weights if they fit; return whether they did."""
    own = weights_of(model)
    if {name: value.shape for name, value in own.items()} != {name: v.shape for name, v in weights.items()}:
        return False
    if not hasattr(model, "state_dict"):
        model.set_weights(list(weights.values()))
        return True
    import torch

    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            tensor.copy_(torch.from_numpy(weights[name.removeprefix("_orig_mod.").removeprefix("module.")]))
    return True


def _differences(ours: Weights, theirs: Weights) -> list[str]:
    """List the first weights that have another shape, or that only one of two models has."""
    found = [
        f"{_name(name)} is {_size(theirs[name])}, ours {_size(ours[name])}"
        for name in ours
        if name in theirs and ours[name].shape != theirs[name].shape
    ]
    found += [f"{_name(name)} is missing" for name in ours if name not in theirs]
    found += [f"{_name(name)} is new" for name in theirs if name not in ours]
    return [*found[:SHOWN], *([f"{len(found) - SHOWN} more"] if len(found) > SHOWN else [])]


def _name(weight: str) -> str:
    return f"weight {int(weight) + 1}" if weight.isdigit() else weight  # Keras' have positions


def _size(weights: np.ndarray[Any, Any]) -> str:
    return " by ".join(map(str, weights.shape)) or "a number"


def _learners_model(attempt: Path, weights: Weights) -> Any:
    try:
        theirs = _prepared(attempt)
    except CannotExamine:
        raise
    except Exception as error:
        raise CannotExamine(f"your script, run up to its training once more, raised {error!r}") from None
    model = _model_of(theirs)
    for each in (model, *theirs.values()):
        is_model = hasattr(each, "named_parameters") or hasattr(each, "get_weights")
        if is_model and not isinstance(each, type) and _takes(each, weights):
            return each
    raise CannotExamine("the weights that were trained fit neither our model nor one that your script builds")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
