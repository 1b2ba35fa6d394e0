"""Records every module call of a forward pass, with the range of inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from diagnostics.collectors.isolation.recording import is_recorded
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.facts.nonfinite import FrameFacts, ValueRange
from diagnostics.facts.training import TraceFacts
from diagnostics.tensor_probe import listening


@dataclass
class Call:
    """One module's call."""

    path: str
    module: nn.Module
    depth: int
    inputs: ValueRange | None
    outputs: ValueRange | None = None
    dtype: str | None = None
    rows: tuple[int, ...] = ()
    only_loss: bool = False  # whether nothing but single numbers of its output is not finite
    output_gradients: list[bool] = field(default_factory=list)  # whether each that arrived was finite
    input_gradients: list[bool] = field(default_factory=list)

    @property
    def weights(self) -> ValueRange | None:
        """The range of its own parameters, as they are now."""
        return value_range(list(self.module.parameters(recurse=False)))

    @property
    def kind(self) -> str:
        """Its name in the report."""
        return type(self.module).__name__

    def end(self, output: Any, size: int = 0) -> list[Tensor]:
        """Record the output; return its tensors of floats."""
        made = [t for t in tensors(output) if t.is_floating_point()]
        self.outputs = value_range(made)
        self.dtype = str(made[0].dtype).removeprefix("torch.") if made else None
        self.rows = broken_rows(made, size)
        broken = [t for t in made if not bool(t.detach().isfinite().all())]
        self.only_loss = bool(broken) and not any(t.ndim for t in broken)
        return made

    def frame(self) -> FrameFacts:
        """Return the facts for the report."""
        return FrameFacts(self.path, self.kind, self.dtype, self.weights, self.inputs, self.outputs)

    @property
    def makes_it(self) -> bool:
        """Whether it made NaN or inf from finite input. A mask's -inf is none, unless weights made it."""
        if self.outputs is None or self.got_it:
            return False
        return self.outputs.broken or bool(self.outputs.minus_inf and self.multiplies)

    @property
    def makes_loss(self) -> bool:
        """Whether it is the model itself, or a module for a loss, and only its loss is not finite."""
        return self.only_loss and (not self.path or isinstance(self.module, nn.modules.loss._Loss))

    @property
    def got_it(self) -> bool:
        """Whether it was there in its input. A mask's -inf is not, unless weights are to be multiplied with it."""
        if self.inputs is None:
            return False
        return self.inputs.broken or bool(self.inputs.minus_inf and self.multiplies)

    @property
    def multiplies(self) -> bool:
        """Whether it is a layer with weights of its own."""
        return not any(self.module.children()) and self.weights is not None


@dataclass
class Point(Call):
    """A tensor that the model showed by `diagnostics.probe`, called as the probe is; `module` is where.

    Attributes:
        tainted: whether NaN or inf had been seen before it in the same pass.
    """

    within: str = ""
    tainted: bool = False

    @property
    def weights(self) -> ValueRange | None:
        """It has none."""
        return None

    @property
    def kind(self) -> str:
        """The place of the probe."""
        return f"probe in {self.within or 'the model'}"

    @property
    def got_it(self) -> bool:
        """Whether something before it made NaN or inf."""
        return self.tainted


def value_range(values: list[Tensor]) -> ValueRange | None:
    """Describe the numbers of tensors of floats; None if there are none."""
    floats = [value.detach() for value in values if value.is_floating_point() and value.numel()]
    if not floats:
        return None
    lowest: float | None = None
    highest: float | None = None
    nan = inf = minus_inf = 0
    for value in floats:
        finite = value[value.isfinite()].abs()
        if finite.numel():
            low, high = float(finite.min()), float(finite.max())
            lowest = low if lowest is None else min(lowest, low)
            highest = high if highest is None else max(highest, high)
        if finite.numel() < value.numel():
            nan += int(value.isnan().sum())
            inf += int(value.isposinf().sum())
            minus_inf += int(value.isneginf().sum())
    return ValueRange(lowest, highest, nan, inf, minus_inf)


@contextmanager
def calls_seen(
    model: nn.Module,
    size: int,
    gradient: bool,
    failed: Callable[[Exception], None] | None = None,
    whole: bool = True,
) -> Iterator[list[Call]]:
    """Collect every module's calls in the order in which they end: a child before its parent.

    Args:
        model: gets the hooks.
        size: examples in the batch; 0 if they are not to be checked one by one.
        gradient: whether to record the backward pass as well.
        failed: called with an exception in the hooks, which is then not raised.
        whole: whether to record the model itself as well as the modules in it.
    """
    ended: list[Call] = []
    running: list[Call] = []
    handles: list[Any] = []
    broken: list[bool] = []

    def safe(hook: Callable[..., None]) -> Callable[..., None]:
        def run(*arguments: Any) -> None:
            if is_recorded():  # the hook would become part of the program
                return
            try:
                hook(*arguments)
            except Exception as fault:
                if failed is None:
                    raise
                failed(fault)

        return run

    def begins(path: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, kwargs: Any) -> None:
            given = [t for t in tensors((args, kwargs)) if t.is_floating_point()]
            call = Call(path, module, len(running), value_range(given))
            running.append(call)
            broken.append(call.got_it)
            if gradient:
                _listen(given, call.input_gradients)

        return hook

    def ends(_module: nn.Module, _args: Any, _kwargs: Any, output: Any) -> None:
        call = running.pop()
        made = call.end(output, size)
        ended.append(call)
        broken.append(call.makes_it)
        if gradient:
            _listen(made, call.output_gradients)

    def at_probe(value: Any, name: str) -> None:
        module, path = (running[-1].module, running[-1].path) if running else (model, "")
        point = Point(name, module, len(running), None, within=path, tainted=any(broken))
        point.end(value, size)
        ended.append(point)
        broken.append(point.makes_it)

    for path, module in list(model.named_modules())[0 if whole else 1 :]:
        handles.append(module.register_forward_pre_hook(safe(begins(path)), with_kwargs=True))
        handles.append(module.register_forward_hook(safe(ends), with_kwargs=True))
    try:
        with listening(safe(at_probe), is_recorded):
            yield ended
    finally:
        for handle in handles:
            handle.remove()


class Trace:
    """Hooks on all modules, for the first forward pass of each step that is to be traced.

    It waits for the device at every call: that is why the steps are chosen, and few.

    Args:
        model: the one whose modules get hooks.
        steps: to be traced.
        failed: called with a fault of this library; the trace of that step is lost.
    """

    def __init__(self, model: nn.Module, steps: Collection[int], failed: Callable[[Exception], None]) -> None:
        self._model = model
        self._failed = failed
        self._open: tuple[int, list[Call], ExitStack] | None = None
        self._lost = False
        self.steps = frozenset(steps)
        self.traces: list[TraceFacts] = []

    def open(self, step: int, inputs: Any) -> None:
        """Trace the pass that is about to run.

        Args:
            step: its step.
            inputs: the model's arguments; its own hooks are running already.
        """
        self.abandon()
        self._lost = False
        self._root = Call("", self._model, 0, value_range(tensors(inputs)))
        stack = ExitStack()
        calls = stack.enter_context(calls_seen(self._model, 0, False, self._fault, whole=False))
        self._open = (step, calls, stack)

    def close(self, output: Any) -> None:
        """Remove the hooks, and store the trace; the weights are read now, before they change."""
        if self._open is None:
            return
        step, calls, _ = self._open
        self.abandon()
        if not self._lost:
            self._root.end(output)
            self.traces.append(TraceFacts(step, tuple(call.frame() for call in (*calls, self._root))))

    def abandon(self) -> None:
        """Remove the hooks."""
        if self._open is not None:
            self._open[2].close()
            self._open = None

    def _fault(self, fault: Exception) -> None:
        if not self._lost:
            self._lost = True
            self._failed(fault)


def _listen(values: list[Tensor], heard: list[bool]) -> None:
    def hook(gradient: Tensor) -> None:
        heard.append(bool(gradient.isfinite().all()))

    for value in values:
        if value.requires_grad:
            value.register_hook(hook)


def broken_rows(values: list[Tensor], size: int) -> tuple[int, ...]:
    """Number the examples, counted from 0, that hold NaN or an infinity."""
    rows: set[int] = set()
    for value in values:
        if value.ndim and value.shape[0] == size and size:
            bad = ~value.detach().isfinite().reshape(size, -1).all(1)
            rows.update(bad.nonzero().flatten().tolist())
    return tuple(sorted(rows))
