"""What a watch says of a cage's loop, held against where the script truly breaks, found without the library.

Each script runs once, in a process of its own, with a few hooks of PyTorch's beside those of `diagnostics`; the
truth is what these saw, or what stands in the script's own variables when it has ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """\
import contextlib, io, json, runpy, sys

from diagnostics.run.observer import ScriptObserver

run = ScriptObserver()
import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

steps, not_finite, left = 0, [], []


def looked(module, _, output):
    single = isinstance(output, torch.Tensor) and not any(module.children())
    if single and torch.is_grad_enabled() and not not_finite and not output.isfinite().all():
        not_finite.append((steps, module))


def called(module, _):
    if steps and torch.is_grad_enabled() and not left and any(p.grad is not None for p in module.parameters()):
        left.append(steps)


def stepped(*_):
    global steps
    steps += 1


register_module_forward_hook(looked)
register_module_forward_pre_hook(called)
register_optimizer_step_post_hook(stepped)
with contextlib.redirect_stdout(io.StringIO()):
    script = runpy.run_path(sys.argv[1], run_name="__main__")
run.close()
(report,) = run.watched()
model, optimizer = script["model"], script["optimizer"]
names = {id(module): name for name, module in model.named_modules()}
held = {id(p) for group in optimizer.param_groups for p in group["params"]}
truth = {
    "steps": steps,
    "not_finite": [[step, names[id(module)]] for step, module in not_finite],
    "left": left,
    "no_gradient": sorted({n.rpartition(".")[0] for n, p in model.named_parameters() if p.grad is None}),
    "not_held": [name for name, p in model.named_parameters() if id(p) not in held],
    "recurrent": [name for name, module in model.named_modules() if isinstance(module, torch.nn.RNNBase)],
}
if truth["recurrent"]:  # the gradient of the loss by position in what the recurrent layer reads
    kept = []
    layer = model.get_submodule(truth["recurrent"][0])
    layer.register_forward_pre_hook(lambda _, args: args[0].retain_grad() or kept.append(args[0]))
    inputs, labels = next(iter(script["train"]))
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    by_position = kept[0].grad.abs().amax(dim=(0, 2))
    truth["first_to_last"] = float(by_position[0] / by_position[-1])
print(json.dumps({"truth": truth, "faults": run.faults, "report": json.loads(report.to_json())}))
"""


def ran(program: str, script: str) -> dict[str, Any]:
    """Run a cage's broken script within a program; return what that prints at its end."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(ROOT / "bugs" / script / "train.py")],
        env=os.environ | {"OMP_NUM_THREADS": "1"},  # two trainings that both want every core are ten times slower
        capture_output=True,
        text=True,
        timeout=600,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert said["faults"] == []
    return said


def watched(script: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Run a cage's broken script; return the truth, and the first finding."""
    said = ran(PROGRAM, script)
    assert said["report"]["faults"] == []
    first = said["report"]["findings"][0]
    return said["truth"], first, first["rule"]


@pytest.mark.slow
@pytest.mark.exhaustive
class TestFirstFinding:
    def test_of_cage_11_names_the_step_and_the_layer_that_first_overflowed(self) -> None:
        truth, first, rule = watched("11_half_precision_overflow")
        ((step, module),) = truth["not_finite"]
        assert (rule, first["step"]) == ("half-precision-overflow", step)
        assert first["message"].startswith(f"In step {step}, {module} (Linear) passed 65,504, ")

    def test_of_cage_12_names_the_first_step_whose_gradients_were_left_over(self) -> None:
        truth, first, rule = watched("12_gradients_never_zeroed")
        assert (rule, [first["step"]]) == ("gradients-not-zeroed", truth["left"])

    def test_of_cage_13_names_the_layers_without_a_gradient(self) -> None:
        truth, first, rule = watched("13_detached_encoder")
        assert rule == "unreached-parameters"
        assert truth["no_gradient"] == ["embedding", "encoder"]
        assert first["evidence"]["layers"] == truth["no_gradient"]

    def test_of_cage_15_names_the_layer_through_which_the_gradient_fades(self) -> None:
        truth, first, rule = watched("15_fading_gradient")
        assert (rule, [first["evidence"]["module"]]) == ("vanishing-gradients", truth["recurrent"])
        assert truth["first_to_last"] < 1e-4
        assert first["evidence"]["share_at_beginning"] < 1e-4

    def test_of_cage_16_names_as_many_parameters_as_the_optimizer_does_not_hold(self) -> None:
        truth, first, rule = watched("16_untrained_model")
        assert rule == "optimizer-misses-parameters"
        assert truth["not_held"]
        assert sorted(first["evidence"]["missing"]) == sorted(truth["not_held"])


TRAINER_PROGRAM = """\
import contextlib, io, json, runpy, sys

from diagnostics.run.observer import ScriptObserver

run = ScriptObserver()
with contextlib.redirect_stdout(io.StringIO()):
    script = runpy.run_path(sys.argv[1], run_name="__main__")
    run.close()
    trainer = script["trainer"]
    trainer.compute_metrics = None
    logits, labels, _ = trainer.predict(trainer.eval_dataset)
(examined,), (watched,) = run.examined, run.watched()
truth = {
    "share": float(script["share"]),
    "answers": sorted(set(logits.argmax(axis=-1).tolist())),
    "examples": len(labels),
    "complaints": int(labels.sum()),
    "steps": trainer.state.global_step,
}
reports = [json.loads(report.to_json()) for report in (examined, watched)]
print(json.dumps({"truth": truth, "faults": run.faults, "reports": reports}))
"""


@pytest.mark.slow
@pytest.mark.exhaustive
def test_of_cage_18_the_counts_of_labels_and_answers_are_those_of_the_dataset_and_of_the_model() -> None:
    said = ran(TRAINER_PROGRAM, "18_majority_class")
    truth, (before, beside) = said["truth"], [report["findings"][0] for report in said["reports"]]
    assert (before["rule"], before["severity"]) == ("class-imbalance", "warning")
    assert before["evidence"]["majority_share"] == pytest.approx(1 - truth["share"], abs=0.02)
    assert (beside["rule"], beside["step"]) == ("constant-predictions", truth["steps"])
    assert beside["severity"] != "error"
    assert truth["answers"] == [0]
    assert beside["evidence"] == {
        "class": 0,
        "examples": truth["examples"],
        "labels": [truth["examples"] - truth["complaints"], truth["complaints"]],
    }
