"""See `SettingWithoutEffect`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Fix, Rule, check
from diagnostics.facts.calls import UnreadLosses
from diagnostics.facts.written import IdleSetting, SettingFacts, WrittenPatterns
from diagnostics.text.join import capitalized, count_of, listed

SHOWN = 3  # modules or parameters named in the message; the evidence holds them all


class SettingWithoutEffect(Rule):
    """The script sets an attribute that nothing reads, so the setting has no effect.

    ## What it does
    Looks for attributes that resemble settings but have no effect: `requires_grad` of a module, `require_grad` of
    a parameter, `lr` of an optimizer, `transform` of a `Subset`, `shuffle` of a `DataLoader`.

    During a Keras `fit` on TensorFlow, it looks for a Python number, such as the weight of a term or a dropout
    rate, that a callback changes after the training step has been traced.

    `diagnose run` also searches the script for three patterns:

    - The same attribute is set to different values through both subsets of a split. The subsets share one dataset,
      so the second value overwrites the first.
    - The result of a method is discarded, as in `scores.masked_fill(mask, -1e9)`, or a loop over parameters only
      rebinds the loop variable.
    - A Keras layer has a regularizer or calls `add_loss`, but a custom `train_step`, `compute_loss` or training
      loop never reads the model's `losses`.

    ## Why it is bad
    Python raises no error when a script sets an attribute that nothing reads. Layers that should be frozen are
    trained, the learning rate does not change, or the images are not augmented. If a result is discarded, a mask
    is not applied, or the moving average of the weights stays at its initial value.

    ## Example
    ```python
    model.backbone.requires_grad = False          # a module has no such setting
    for parameter in model.backbone.parameters():
        parameter.require_grad = False            # requires_grad
    optimizer.lr = 1e-4
    ```

    ## Instead
    ```python
    model.backbone.requires_grad_(False)
    for group in optimizer.param_groups:
        group["lr"] = 1e-4
    ```

    ## Thresholds
    The rule reports only settings that certainly have no effect:

    - Attribute of a module: all parameters of the module require gradients, have gradients and are in the
      optimizer, and no class in the model uses the attribute's name.
    - Attribute of an optimizer: the optimizer is one of PyTorch's own, its learning rates never changed, and the
      attribute differs from all of these rates.
    - Attribute of a subset: its dataset has an attribute of that name with a different value.
    - Discarded result: it was returned by a PyTorch function, by a tensor method with an in-place version, or by
      one of a few methods of pandas and datasets, outside any `try` block.
    - Traced number: it is read by `train_step`, `compute_loss` or `call` of the model, a layer or the loss, or by
      a method that one of these calls. It is a float, and at 8 or more steps its value differed from its value in
      the latest trace.
    - Layer losses: only evaluation code reads them or calls a regularizer, and no `tf.function` computes a loss
      from them.

    ## Known problems
    If a script reads the attribute outside the model and acts on it, the finding is a false positive.

    ## Sources
    PyTorch's documentation for `torch.nn.Module.requires_grad_` and `torch.optim` ("How to adjust learning rate");
    udacity/deep-learning-v2-pytorch, issue 12; pyg-team/pytorch_geometric, issue 8557.
    """

    severity = "warning"
    causes = ("evaluation-mismatch", "unscaled-inputs", "sorted-by-label")

    @check
    def from_settings(self, settings: SettingFacts) -> Finding | None:
        """Report the first attribute without effect."""
        if not settings.idle:
            return None
        first, *others = settings.idle
        message, fix = _TOLD[first.holder](first)
        more = [f"{one.name} of {one.kind}" for one in others]
        same = [f"`{one.name}` of {one.kind}" for one in others]
        return self.found(
            message + (f" The same applies to {listed(same)}." if same else ""),
            fix=fix,
            evidence={
                "holder": first.holder,
                "name": first.name,
                "value": first.value,
                "paths": list(first.paths),
                "others": more,
            },
        )

    @check
    def from_losses(self, unread: UnreadLosses) -> Finding:
        """Report layer losses that a custom training step leaves out."""
        in_loop = unread.step == "loop"
        whose, model = ("loop over the batches", "model") if in_loop else (f"`{unread.step}`", "self")
        parts = [
            f"{_layers(names)} {verb if len(names) == 1 else verbs}"
            for names, verb, verbs in (
                (unread.penalized, "has a regularizer", "have regularizers"),
                (unread.added, "calls add_loss", "call add_loss"),
            )
            if names
        ]
        return self.found(
            f"{capitalized(', and '.join(parts))}, but the script's {whose} never reads `{model}.losses`, where "
            "Keras collects these loss terms. The loss being minimised does not include these terms.",
            fix=(
                f"loss += sum({model}.losses)  # inside the tape",
                "remove the regularizers and add_loss calls, if you do not want them"
                if in_loop
                else f"loss = {'self' if unread.step == 'train_step' else 'super()'}.compute_loss(x, y, y_pred), "
                "which adds these terms",
            ),
            evidence={"step": unread.step, "penalized": list(unread.penalized), "added": list(unread.added)},
        )

    @check
    def from_source(self, written: WrittenPatterns) -> Finding | None:
        """Report the first setting that another part of the same dataset overwrites, or the first lost result."""
        shared = written.first("shared_settings")
        if shared is None:
            return self._of_lost(written)
        first, second, name, lost, kept = shared.names
        return self.found(
            f"`{first}` and `{second}` are subsets of the same dataset, so `{second}.dataset.{name} = {kept}` "
            f"also replaces the value set for `{first}.dataset.{name}`. `{lost}` is never used, not even in "
            "training.",
            fix=(
                f"create two datasets, each with its own {name}, and take a Subset(dataset, indices) of each",
                f"{second}.dataset = copy.copy({second}.dataset)  # before you set {name}",
            ),
            evidence={
                "holder": "split",
                "name": name,
                "value": lost,
                "paths": [first, second],
                "others": [],
            },
            where=shared.where,
        )

    def _of_lost(self, written: WrittenPatterns) -> Finding | None:
        one = written.first("lost_results")
        if one is None:
            return None
        shown, name, rebound = one.names
        if rebound:
            message = (
                f"`{shown}` binds the name `{name}` to a new tensor. The original parameter does not change, and "
                "neither does the model."
            )
            fix: Fix = (
                f"with torch.no_grad(): {name}.copy_(...)  # writes into the parameter",
                f"{name}.data.mul_(decay).add_(other, alpha=1 - decay)",
            )
        else:
            message = (
                f"`{shown}` returns a new object, which the script discards. `{name}` itself does not change, so "
                "the line has no effect."
            )
            fix = f"{name} = {shown}"
        return self.found(
            message,
            fix=fix,
            evidence={"holder": "statement", "name": name, "value": shown, "paths": [], "others": []},
            where=one.where,
            severity=one.severity,
        )


def _layers(names: Sequence[str]) -> str:
    kind = "layer" if len(names) == 1 else "layers"
    return f"{kind} {listed([f'`{name}`' for name in names], most=SHOWN)}"


def _of_module(idle: IdleSetting) -> tuple[str, Fix]:
    one = len(idle.paths) == 1
    path = idle.paths[0]
    module = f"the module `{path}`" if path else "the model"
    return (
        f"The script sets `{idle.name} = False` on "
        f"{module if one else f'{len(idle.paths)} modules: {_named(idle)}'}. Modules have no such setting, so "
        f"PyTorch ignores it: the parameters of {'this ' if one else 'these '}{idle.kind} still require "
        f"gradients, and {idle.steps_on} updates all of them.",
        (f"{_written('model.' + path) if path else 'model'}.requires_grad_(False)",),
    )


def _written(path: str) -> str:
    """Write the path of a module as code: ``model.layers.0`` is ``model.layers[0]``."""
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", path)


def _of_parameter(idle: IdleSetting) -> tuple[str, Fix]:
    return (
        f"The script sets `{idle.name} = False` on {count_of(len(idle.paths), 'parameter')}: {_named(idle)}. "
        f"PyTorch reads only `requires_grad`, so {'it' if len(idle.paths) == 1 else 'they'} still "
        f"require{'s' if len(idle.paths) == 1 else ''} gradients, and {idle.steps_on} updates "
        f"{'it' if len(idle.paths) == 1 else 'them'}.",
        "parameter.requires_grad = False",
    )


def _of_optimizer(idle: IdleSetting) -> tuple[str, Fix]:
    return (
        f"The script sets `{idle.name} = {idle.value}` on the optimizer ({idle.kind}), which reads the learning "
        f"rate from its parameter groups, not from this attribute: every step checked used {idle.instead}.",
        (
            f'for group in optimizer.param_groups: group["lr"] = {idle.value}',
            "use a scheduler from torch.optim.lr_scheduler, which updates the learning rate of every parameter "
            "group",
        ),
    )


def _of_subset(idle: IdleSetting) -> tuple[str, Fix]:
    return (
        f"The script sets `{idle.name} = {idle.value}` on a Subset. A Subset has no such setting: its rows come "
        f"from the underlying {idle.kind} dataset, whose own `{idle.name}` is {idle.instead}. So `{idle.value}` "
        "is never called.",
        (
            f"wrap the subset in a custom Dataset whose __getitem__ calls {idle.value}",
            f"create two {idle.kind} datasets, each with its own transform, and take a Subset(dataset, indices) "
            "of each",
        ),
    )


def _of_loader(idle: IdleSetting) -> tuple[str, Fix]:
    return (
        "The script sets `shuffle = True` on a DataLoader that was created without it. The sampler was chosen at "
        "creation and returns the rows in order.",
        "DataLoader(dataset, ..., shuffle=True)",
    )


def _of_traced(idle: IdleSetting) -> tuple[str, Fix]:
    return (
        f"The training step reads `self.{idle.name}` of {idle.kind}, a Python number. TensorFlow read it once, "
        f"while it traced the step: it was {idle.instead}. It has changed since, and is {idle.value} at the end, "
        f"but {idle.steps_on} still used {idle.instead}.",
        (
            f"self.{idle.name} = keras.Variable(float({idle.instead}), trainable=False)  # in __init__",
            f"{idle.name}.assign(value)  # in the callback, once it is such a variable",
            "model.compile(..., run_eagerly=True)  # nothing is traced; slow",
        ),
    )


def _named(idle: IdleSetting) -> str:
    return listed([path or "the model" for path in idle.paths], most=SHOWN)


_TOLD = {
    "module": _of_module,
    "parameter": _of_parameter,
    "optimizer": _of_optimizer,
    "subset": _of_subset,
    "loader": _of_loader,
    "traced": _of_traced,
}
