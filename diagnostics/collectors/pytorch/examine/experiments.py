"""Trains copies of a module, on the batches of its loop or on given ones, with one thing changed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from diagnostics.collectors.isolation.harmless_code import is_library
from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.isolation.whole_copy import whole_copy
from diagnostics.collectors.pytorch.batch import prediction_in
from diagnostics.collectors.pytorch.dependence.kept_pass import filled, on_host
from diagnostics.collectors.pytorch.discover.training_batches import MOST, TrainedBatch
from diagnostics.collectors.pytorch.examine.kept_start import RANDOM_REL_TOLERANCE, REL_TOLERANCE
from diagnostics.collectors.pytorch.examine.model_copy import restore
from diagnostics.collectors.pytorch.losses import IGNORE_INDEX
from diagnostics.collectors.pytorch.model import uncompiled
from diagnostics.collectors.pytorch.optimizer import OptimizerBuilder, full_rate, like
from diagnostics.collectors.pytorch.state import random_states_kept, tensors_kept
from diagnostics.collectors.pytorch.watch.record.captured_pass import named_tensors
from diagnostics.collectors.shared.arrays import to_array
from diagnostics.collectors.shared.experiments.experiment import TINY, Rows, Setup, constant_answers, rows_of
from diagnostics.collectors.shared.experiments.plan import ADAM_RATE, STEPS, run_experiments
from diagnostics.facts.array import Array
from diagnostics.facts.experiments import Experiments
from diagnostics.facts.loss_contracts import LossContract, contract_of

VARIES = 1e-3  # relative: rates of a schedule
ACTIVATIONS = {"relu", "relu6", "leaky_relu", "elu", "gelu", "silu", "softplus", "hardtanh"}
ACTIVATIONS |= {"sigmoid", "tanh", "softmax", "log_softmax", "logsigmoid"}
KINDS = {
    "dropout": (nn.modules.dropout._DropoutNd,),
    "batch norm": (nn.modules.batchnorm._BatchNorm,),
    "normalisation": (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm),
}


@dataclass(frozen=True)
class Run:
    """What is known of a loop.

    Attributes:
        model: with the weights that the loop began with.
        given: (positional, named) arguments of a call, into which the inputs are filled by their paths.
        loss: of prediction and target.
        contract: of it.
        options: its arguments, but for prediction and target.
        optimizer: builds one like the loop's.
        name: its class.
        rate: its full learning rate.
        batches: recorded.
        value: the loss of the first of them; None if not known.
        idle: names of the modules in evaluation mode.
        clip: see `Setup`.
        library: see `Setup`.
    """

    model: nn.Module
    given: tuple[tuple[Any, ...], dict[str, Any]]
    loss: Callable[..., Tensor]
    contract: LossContract
    options: Mapping[str, Any]
    optimizer: OptimizerBuilder
    name: str
    rate: float
    batches: Sequence[TrainedBatch]
    value: float | None = None
    idle: frozenset[str] = frozenset()
    clip: float | None = None
    library: str = "torch"


def experiments(run: Run, deadline: float, steps: int = STEPS, level: float = math.inf) -> Experiments | str:
    """Run the experiments on copies; return why they cannot be run, if so."""
    with own_run(), own_warnings_ignored(), random_states_kept(), torch.enable_grad():
        table = _Table.of(run)
        if isinstance(table, str):
            return table
        if run.value is not None:
            setup = TorchSetup(run, table)
            if not setup.has_places():
                return "its loss reads something else than what its model returns"
            value, other = setup.loss(setup.rows.first), setup.loss(setup.rows.first)  # dropout draws others
            tolerance = REL_TOLERANCE if other == value else RANDOM_REL_TOLERANCE
            if not abs(value - run.value) <= tolerance * max(abs(run.value), TINY):
                return f"the loss of its first step was {run.value:.4g}, and is {value:.4g} on a copy"
        return run_experiments(lambda: TorchSetup(run, table), deadline, steps, level)


@dataclass(frozen=True)
class _Table:
    """The rows of a loop, and how many of a prediction and a target belong to each.

    Attributes:
        rows: of all batches.
        constants: inputs that are the same in each batch, by path.
        prediction: the first axis of a prediction has so many places for each row; and the lengths of the others.
        target: the first axis of a target likewise; 0 if it has the rows alone.
    """

    rows: Rows
    constants: Mapping[str, Tensor]
    prediction: tuple[int, tuple[int, ...]]
    target: int

    @classmethod
    def of(cls, run: Run) -> _Table | str:
        if not run.batches:
            return "no batch was kept"
        first = run.batches[0]
        sized = {path: tensor for path, tensor in first.inputs.items() if tensor.ndim}
        if not sized:
            return "the model's inputs are not tensors of rows"
        size = len(next(iter(sized.values())))
        constants = {path: t.cpu() for path, t in first.inputs.items() if not t.ndim or len(t) != size}
        taken: list[tuple[dict[str, Array], Array]] = []
        per_target = len(first.target) // max(1, size) if first.target.ndim else 0
        for batch in run.batches:
            rows = next((len(t) for path, t in batch.inputs.items() if path not in constants), 0)
            inputs = {path: to_array(t) for path, t in batch.inputs.items() if path not in constants}
            target = to_array(batch.target)
            if not rows or target is None or any(array is None for array in inputs.values()):
                return "its batches hold numbers that NumPy does not have"
            if not target.ndim or per_target < 1 or len(target) != rows * per_target:
                return "its loss does not have a target for each row"
            if per_target > 1:
                target = target.reshape(rows, per_target, *target.shape[1:])
            if not batch.shape or batch.shape[0] % rows:
                return "its loss does not have a prediction for each row"
            taken.append(({path: array for path, array in inputs.items() if array is not None}, target))
        rows_or_why = rows_of(taken)
        if isinstance(rows_or_why, str):
            return rows_or_why
        return cls(
            rows_or_why,
            constants,
            (first.shape[0] // size, first.shape[1:]),
            per_target if per_target > 1 else 0,
        )


class TorchSetup(Setup):
    """A copy of a module, its optimizer, and its loss.

    Args:
        run: what is known of the loop.
        table: its rows.
    """

    def __init__(self, run: Run, table: _Table) -> None:
        rates = [batch.rate or run.rate for batch in run.batches]
        full = max(run.rate, *rates)
        varies = full - min(rates) > VARIES * full
        super().__init__(
            library=run.library,
            rows=table.rows,
            contract=run.contract,
            optimizer=run.name,
            rate=full,
            rates=tuple(rate / full for rate in rates) if varies else (),
            clip=run.clip,
            shapes=(run.batches[0].shape, tuple(run.batches[0].target.shape)),
        )
        self._run, self._table = run, table
        self._skipped: int | None = None  # the number of the activation that is left out, counted from 0
        self._all = False  # whether all weights are trained
        torch.default_generator.manual_seed(0)
        self.model: nn.Module = whole_copy(run.model)
        for name, module in self.model.named_modules():
            module.training = name not in run.idle
        groups = run.optimizer(self.model, 1.0).param_groups
        self.decays = any(group.get("weight_decay") for group in groups)

    def begin(self, start: int) -> Callable[[Array, float], float]:
        """See `Setup.begin`."""
        torch.default_generator.manual_seed(start)
        optimizer = self._optimizer()
        full = [group["lr"] for group in optimizer.param_groups]

        def step(rows: Array, share: float) -> float:
            for group, rate in zip(optimizer.param_groups, full, strict=True):
                group["lr"] = rate * share
            optimizer.zero_grad(set_to_none=True)
            trained, shown = self._losses(rows)
            value = float(shown.detach())
            if np.isfinite(value):
                trained.backward()
                if self.clip is not None:
                    nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
                optimizer.step()
            return value

        return step

    def loss(self, rows: Array) -> float:
        """See `Setup.loss`."""
        with torch.no_grad():
            return float(self._losses(rows)[1])

    def constant(self) -> float:
        """See `Setup.constant`."""
        options, (places, others) = self._run.options, self._table.prediction
        weight: Any = options.get("weight")
        answers = constant_answers(
            self.contract,
            self._target(self.rows.held_out).numpy(),
            others,
            options.get("ignore_index", IGNORE_INDEX),
            None if weight is None else np.asarray(weight.double().cpu()),
        )

        def loss(rows: Array, answer: Array) -> float:
            part = self._target(rows)
            given = torch.from_numpy(answer).expand(len(rows) * places, *others).float()
            if self.contract.targets != "classes":
                part = part.reshape(given.shape)  # nothing is broadcast
            return float(self._run.loss(given, part, **options))

        return min((self.on_held_out(partial(loss, answer=one)) for one in answers), default=math.nan)

    def layers(self, kind: str) -> list[str]:
        """See `Setup.layers`."""
        modules = [(name or type(module).__name__, module) for name, module in self.model.named_modules()]
        if kind in KINDS:
            return [name for name, module in modules if isinstance(module, KINDS[kind])]
        if kind == "idle":
            depends = (*KINDS["dropout"], *KINDS["batch norm"])
            return [name for name, module in modules if isinstance(module, depends) and not module.training]
        if kind == "frozen":
            held = {id(p) for group in self._optimizer().param_groups for p in group["params"]}
            found = [
                name
                for name, p in self.model.named_parameters()
                if p.is_floating_point() and (not p.requires_grad or id(p) not in held)
            ]
            return list(dict.fromkeys(name.rpartition(".")[0] or name for name in found))
        if kind == "half":
            halves = (torch.float16, torch.bfloat16)
            return [name for name, p in self.model.named_parameters() if p.dtype in halves]
        return [name for name, module in modules if is_library(module) and hasattr(module, "reset_parameters")]

    def remove(self, kind: str) -> None:
        """See `Setup.remove`."""
        for module in self.model.modules():
            if isinstance(module, KINDS[kind]):
                module.forward = _unchanged  # its parameters stay: the optimizer holds them by name

    def set_training_mode(self) -> None:
        """See `Setup.set_training_mode`."""
        self.model.train()

    def unfreeze(self) -> None:
        """See `Setup.unfreeze`."""
        for parameter in self.model.parameters():
            parameter.requires_grad_(parameter.is_floating_point())
        self._all = True

    def to_float32(self) -> None:
        """See `Setup.to_float32`."""
        self.model.float()

    def initialise(self) -> None:
        """See `Setup.initialise`."""
        for module in self.model.modules():
            if is_library(module) and callable(reset := getattr(module, "reset_parameters", None)):
                reset()

    def last_activation(self) -> str | None:
        """See `Setup.last_activation`."""
        found = self._activation()
        return None if found is None else found[1]

    def remove_last_activation(self) -> None:
        """See `Setup.remove_last_activation`."""
        found = self._activation()
        self._skipped = None if found is None else found[0]

    def _activation(self) -> tuple[int, str] | None:
        """Return number and name of the activation whose result is the prediction."""
        with torch.no_grad(), _Activations() as seen:
            prediction = self._prediction(self.rows.batches[0])
        if not seen.results or seen.results[-1][1] != (prediction.data_ptr(), prediction.numel()):
            return None
        return len(seen.results) - 1, seen.results[-1][0]

    def _optimizer(self) -> torch.optim.Optimizer:
        trained = [p for p in self.model.parameters() if p.requires_grad]
        if self.with_adam:
            return torch.optim.Adam(trained, lr=ADAM_RATE)
        optimizer = self._run.optimizer(self.model, self.factor * self.rate / self._run.rate)
        if self._all:
            held = {id(p) for group in optimizer.param_groups for p in group["params"]}
            if new := [p for p in trained if id(p) not in held]:
                optimizer.add_param_group({"params": new, "lr": self.rate * self.factor})
        for group in optimizer.param_groups:
            if not self.decays and "weight_decay" in group:
                group["weight_decay"] = 0.0
        return optimizer

    def _returned(self, rows: Array) -> Tensor:
        kind = next((p.dtype for p in self.model.parameters() if p.is_floating_point()), None)
        given: dict[str, Tensor] = dict(self._table.constants)
        for path, values in self.rows.inputs.items():
            tensor = torch.from_numpy(values[rows])
            given[path] = tensor if kind is None or not tensor.is_floating_point() else tensor.to(kind)
        args, kwargs = filled(self._run.given, given)
        if self._skipped is None:
            prediction = prediction_in(self.model(*args, **kwargs))
        else:
            with _Activations(self._skipped):
                prediction = prediction_in(self.model(*args, **kwargs))
        if prediction is None:
            raise ValueError("the model returns no tensor")
        return prediction

    def _prediction(self, rows: Array) -> Tensor:
        places, others = self._table.prediction
        return self._returned(rows).reshape(len(rows) * places, *others)

    def has_places(self) -> bool:
        """Return whether the model returns what the loss of the script read, and not only a part of it."""
        places, others = self._table.prediction
        with torch.no_grad():
            found = self._returned(self.rows.first)
        return bool(found.numel() == len(self.rows.first) * places * math.prod(others))

    def _target(self, rows: Array) -> Tensor:
        target = torch.from_numpy(self.rows.target[rows])
        return target.reshape(-1, *target.shape[2:]) if self._table.target else target

    def _losses(self, rows: Array) -> tuple[Tensor, Tensor]:
        """Return the loss to differentiate, and the same in the script's unit."""
        prediction, target = self._prediction(rows), self._target(rows)
        loss, options = self._run.loss, self._run.options
        if self.aligned:
            target = target.reshape(prediction.shape)
        if self.target_scale is None:
            both = loss(prediction, target, **options)
            return both, both
        mean, deviation = self.target_scale
        trained = loss(prediction, (target - mean) / deviation, **options)
        return trained, loss(prediction.detach() * deviation + mean, target, **options)


def run_of_batches(
    model: nn.Module,
    loss: Callable[..., Any],
    batches: Iterable[Any],
    optimizer: Any,
    steps: int,
    deadline: float,
) -> Experiments | str:
    """Run the experiments; return why they cannot be run, if so.

    Args:
        model: with the weights to begin with.
        loss: of prediction and target.
        batches: sequences that end with the target.
        optimizer: of the model; None for Adam.
        steps: of a copy.
        deadline: of `time.monotonic`.
    """
    inner = uncompiled(model)
    with own_run(), own_warnings_ignored(), random_states_kept(batches), tensors_kept(inner):
        given = optimizer if optimizer is not None else torch.optim.Adam(inner.parameters())
        build, rate = like(given, inner), full_rate(given)
        if build is None or not rate:
            return "the optimizer cannot be rebuilt for a copy"
        taken = [batch for batch in itertools.islice(batches, MOST) if isinstance(batch, list | tuple)]
        if not taken or not all(isinstance(part, Tensor) for batch in taken for part in batch):
            return "the batches are not (inputs, target) in tensors"
        fresh: nn.Module = whole_copy(inner).cpu()
        first = tuple(on_host(part) for part in taken[0])
        with torch.no_grad():
            prediction = prediction_in(whole_copy(fresh)(*first[:-1]))
        if prediction is None:
            return "the model returns no tensor"
        return experiments(
            Run(
                model=fresh,
                given=(first[:-1], {}),
                loss=_on_host(loss),
                contract=_contract(loss, prediction, first[-1]),
                options={},
                optimizer=build,
                name=type(given).__name__,
                rate=rate,
                batches=[
                    _recorded(batch, len(prediction) // max(1, len(first[0])), prediction) for batch in taken
                ],
                idle=frozenset(name for name, module in inner.named_modules() if not module.training),
            ),
            deadline,
            steps,
        )


def _on_host(loss: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return a copy of a loss on the host, if it is a module."""
    copied: Callable[..., Tensor] = whole_copy(loss).cpu() if isinstance(loss, nn.Module) else loss
    return copied


def _recorded(batch: Any, places: int, prediction: Tensor) -> TrainedBatch:
    """Return a batch; `places`: of the prediction's first axis for each row."""
    *inputs, target = batch
    shape = (len(inputs[0]) * places, *prediction.shape[1:])
    return TrainedBatch(dict(named_tensors((tuple(inputs), {}))), target, shape, None)


def _contract(loss: Any, prediction: Tensor, target: Tensor) -> LossContract:
    """Return what is known of a loss, by its name; of any other, what its target looks like."""
    known = contract_of(type(loss).__name__ if isinstance(loss, nn.Module) else getattr(loss, "__name__", ""))
    if known.targets is not None:
        return known
    if target.is_floating_point():
        return LossContract(targets="numbers")
    return LossContract(targets="classes", class_axis=1) if prediction.ndim == target.ndim + 1 else known


def _unchanged(given: Any, *_arguments: Any, **_options: Any) -> Any:
    """Stand for a layer that is left out."""
    return given


class _Activations(TorchFunctionMode):  # type: ignore[misc]
    """Sees the calls of activations; leaves one out.

    Args:
        skipped: the number of the call to leave out, counted from 0.

    Attributes:
        results: name of each, with address and size of its result.
    """

    def __init__(self, skipped: int | None = None) -> None:
        super().__init__()
        self._skipped, self.results = skipped, list[tuple[str, tuple[int, int]]]()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the function, or return its first argument in place of its result."""
        name = getattr(func, "__name__", "").rstrip("_")
        if name not in ACTIVATIONS:
            return func(*args, **(kwargs or {}))
        skip = len(self.results) == self._skipped
        given: Any = args[0] if args else (kwargs or {})["input"]
        result = given if skip else func(*args, **(kwargs or {}))
        self.results.append((name, (result.data_ptr(), result.numel())))
        return result


def at_its_beginning(model: nn.Module, values: Mapping[str, Tensor]) -> nn.Module | None:
    """Copy a model to the host with the weights that it began with; None if its layers were replaced since."""
    fresh: nn.Module = whole_copy(uncompiled(model)).cpu()
    return fresh if restore(fresh, values) else None
