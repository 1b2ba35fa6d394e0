"""Runs a script in this process with clocks or a memory gauge beside it, and prints what they showed, as JSON.

`python -m bugs.zoo.keeper.measurement step SCRIPT` and `... memory SCRIPT`: each in a process of its own, since a
device that has failed stays lost to its process. What the script prints goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

LOOP: Final = "\nmodel.train()\n"  # what stands before it prepares, what stands behind it trains
WARM_UP: Final = 3  # steps; the first plans every operation, and loads what is loaded late
# One pass through the loop of a script that has `model`, `optimizer` and `device`, as one that prints its loss.
STEP: Final = {
    "copy to the device": (
        "batch = {name: tensor.to(device) for name, tensor in first.items()}\nlabels = batch.pop('labels')"
    ),
    "forward": "logits = model(**batch).logits",
    "cross_entropy": "loss = torch.nn.functional.cross_entropy(logits, labels)",
    "loss.item()": "loss.item()",
    "backward": "optimizer.zero_grad()\nloss.backward()",
    "optimizer.step": "optimizer.step()",
    "synchronize": "synchronize()",
}


@dataclass(frozen=True)
class Span:
    """What happened when. Times are milliseconds since the step began."""

    name: str
    started: float
    ended: float


@dataclass(frozen=True)
class Step:
    """One training step, as the host's and the device's clocks have it.

    Attributes:
        device: its name.
        host: the lines of the step, by their names in `STEP`, as far as it came.
        waits: when the host did nothing but wait for the device. A GPU does not say; its lines that can only
            wait are taken for it.
        launches: when the host gave work to the device, in ms. Empty for a GPU, which does not say.
        work: when the device was at it, by the line that launched it: operation by operation on the simulated
            device, line by line on a GPU. A GPU that has failed no longer says.
        error: the first line of the exception that ended the step; empty if none did.
    """

    device: str
    host: tuple[Span, ...]
    waits: tuple[Span, ...]
    launches: tuple[float, ...]
    work: tuple[Span, ...]
    error: str

    @classmethod
    def of(cls, values: dict[str, Any]) -> Step:
        """Make it of what `dataclasses.asdict` and JSON have made of it."""
        spans = {name: tuple(Span(**span) for span in values[name]) for name in ("host", "waits", "work")}
        return cls(values["device"], launches=tuple(values["launches"]), error=values["error"], **spans)


class _SimulatedClock:
    """Reads the simulated device's own records."""

    def __init__(self) -> None:
        from bugs.lab.device import backend

        self._backend = backend
        self.synchronize = backend.synchronize
        self.name = "simulated device"

    def start(self) -> None:
        self.synchronize()
        self._backend.clear_timeline()

    def mark(self) -> None:
        pass

    def read(self, host: list[Span], at: Callable[[float], float]) -> tuple[list[Span], list[float], list[Span]]:
        recorded = self._backend.timeline()
        waits = [Span(wait.reason, at(wait.started), at(wait.ended)) for wait in recorded.waits]
        launches = [at(operation.launched) for operation in recorded.operations]
        work = []
        for operation, launched in zip(recorded.operations, launches, strict=True):
            line = next((span.name for span in host if span.started <= launched <= span.ended), operation.name)
            work.append(Span(line, at(operation.started), at(operation.ended)))
        return waits, launches, work


class _CardClock:
    """Puts an event between the lines; the device stamps each when it gets there."""

    def __init__(self) -> None:
        import torch

        self._cuda = torch.cuda
        self.synchronize = torch.cuda.synchronize
        self.name = torch.cuda.get_device_name()
        self._events: list[Any] = []

    def start(self) -> None:
        self.synchronize()
        self._events = []
        self.mark()

    def mark(self) -> None:
        event = self._cuda.Event(enable_timing=True)
        event.record()
        self._events.append(event)

    def read(self, host: list[Span], at: Callable[[float], float]) -> tuple[list[Span], list[float], list[Span]]:
        waits = [span for span in host if span.name in ("loss.item()", "synchronize")]
        if len(self._events) <= len(host):  # a line failed: the device is lost, and its events with it
            return waits, [], []
        self.synchronize()
        stamps = [self._events[0].elapsed_time(event) for event in self._events]
        work = [
            Span(span.name, stamps[number], stamps[number + 1])
            for number, span in enumerate(host)
            if span not in waits
        ]
        return waits, [], work


def measure_step(script: Path) -> Step:
    """Run the script up to its loop, warm up, and measure one step on its first batch.

    The steps of the warm-up have no label beyond the model's outputs, so that they pass whatever the bug.

    Raises:
        ValueError: the script has no line `model.train()`, or trains on the CPU, where host and device are one.
    """
    before, found, _ = script.read_text("utf-8").partition(LOOP)
    if not found:
        raise ValueError(f"{script}: expected a line model.train() before the loop, found none")
    space: dict[str, Any] = {"__name__": "__main__", "__file__": str(script)}
    with contextlib.redirect_stdout(sys.stderr):
        exec(compile(before, script, "exec"), space)
    if space["device"].type == "cpu":
        raise ValueError(f"{script} trains on the CPU, which is the host: there is no second clock to read")
    clock = _CardClock() if space["device"].type == "cuda" else _SimulatedClock()
    space["model"].train()
    space["synchronize"] = clock.synchronize
    first = dict(next(iter(space["train_loader"])))
    lines = {name: compile(code, "<step>", "exec") for name, code in STEP.items()}
    space["first"] = first | {"labels": first["labels"].clamp(max=space["model"].config.num_labels - 1)}
    for _ in range(WARM_UP):
        for code in lines.values():
            exec(code, space)
    space["first"] = first

    clock.start()
    zero = time.perf_counter()

    def at(moment: float) -> float:
        return 1000 * (moment - zero)

    host: list[Span] = []
    error = ""
    for name, code in lines.items():
        started = time.perf_counter()
        try:
            exec(code, space)
            clock.mark()
        except Exception as failure:  # whatever it is, it is what there is to record
            error = f"{type(failure).__name__}: {failure}".partition("\n")[0]
        host.append(Span(name, at(started), at(time.perf_counter())))
        if error:
            break
    waits, launches, work = clock.read(host, at)
    return Step(clock.name, tuple(host), tuple(waits), tuple(launches), tuple(work), error)


def measure_memory(script: Path) -> dict[str, Any]:
    """Run the whole script, and return what ended it and the most memory that PyTorch held on the GPU.

    Returns:
        `exception`: its type and text, None if the script came to its end. `allocated_peak` and `reserved_peak`:
        bytes, by tensors and by PyTorch's allocator; None where there is no GPU.
    """
    exception = None
    with contextlib.redirect_stdout(sys.stderr):
        try:
            exec(compile(script.read_text("utf-8"), script, "exec"), {"__name__": "__main__"})
        except Exception as failure:
            exception = f"{type(failure).__name__}: {failure}"
    import torch

    card = torch.cuda.is_available()
    return {
        "exception": exception,
        "allocated_peak": torch.cuda.max_memory_allocated() if card else None,
        "reserved_peak": torch.cuda.max_memory_reserved() if card else None,
    }


def main(arguments: list[str]) -> int:
    """Measure, print one line of JSON, and return 0."""
    what, script = arguments
    measured = asdict(measure_step(Path(script))) if what == "step" else measure_memory(Path(script))
    print(json.dumps(measured), flush=True)  # a process that has lost its GPU may not end in good order
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
