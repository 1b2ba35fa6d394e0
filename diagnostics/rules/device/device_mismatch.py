"""See `DeviceMismatch`."""

from __future__ import annotations

from collections.abc import Mapping

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.crash import CrashFacts, DevicesDiffer

MAX_TENSORS_NAMED = 6  # a forward can hold dozens of tensors; the evidence holds them all

FIX = "move model and batch alike: batch = {name: tensor.to(model.device) for name, tensor in batch.items()}"


_UNREAD = " Which tensors these are could not be read from the exception's frames."
_UNKNOWN = (
    " Which tensors these are cannot be known from the text: pass the exception itself to diagnostics.explain."
)


class DeviceMismatch(Rule):
    """One operation was given tensors that live on different devices.

    ## What it does
    Recognises the failure, and reads from the frames which tensor is where.

    ## Why it is bad
    An operation runs on one device and reads that device's memory. A tensor on another one has to be copied
    first, and PyTorch leaves that to you, since a hidden copy in every step would be slow. The message names
    the devices, but seldom the tensor that was left behind.

    ## Example
    ```python
    model.to("cuda")
    for inputs, labels in loader:    # the loader's tensors are on the CPU
        loss = loss_fn(model(inputs), labels)
    ```

    ## Instead
    ```python
    model.to("cuda")
    for inputs, labels in loader:
        inputs, labels = inputs.to("cuda"), labels.to("cuda")
        loss = loss_fn(model(inputs), labels)
    ```

    ## Thresholds
    None: it is found only once an operation has failed.

    ## Known problems
    The tensors named are those of the function that failed, under the names they have there, which may not
    be yours. A zero-dimensional CPU tensor, which may be mixed with others, is listed too.

    ## Sources
    PyTorch's notes on "CUDA semantics" ("cross-GPU operations are not allowed by default").
    """

    severity = "error"
    no_exhibit = "it takes a second device to show, and the error says nearly all there is to say"

    @check
    def from_crash(self, crash: CrashFacts, symptom: DevicesDiffer) -> Finding | None:
        """Name the tensors and their devices, or the devices alone."""
        devices = symptom.devices or tuple(dict.fromkeys(symptom.tensors.values()))
        on = " and ".join(devices) if devices else "different devices"
        detail = f": {_by_device(symptom.tensors)}" if symptom.tensors else ""
        unknown = "" if symptom.tensors else _UNREAD if crash.live else _UNKNOWN
        return self.found(
            f"One operation was given tensors on {on}{detail}. It runs on one device and cannot read "
            f"another's memory.{unknown}",
            fix=_fix(symptom.tensors),
            evidence={"devices": list(devices), "tensors": dict(symptom.tensors)},
            where=crash.where,
        )


def _by_device(tensors: Mapping[str, str]) -> str:
    parts = []
    for device in dict.fromkeys(tensors.values()):
        names = [name for name, place in tensors.items() if place == device]
        rest = f" and {len(names) - MAX_TENSORS_NAMED} more" if len(names) > MAX_TENSORS_NAMED else ""
        parts.append(f"{', '.join(names[:MAX_TENSORS_NAMED])}{rest} on {device}")
    return "; ".join(parts)


def _fix(tensors: Mapping[str, str]) -> str:
    """Name the line that moves the one tensor left on the CPU, if there is just one."""
    behind = [name for name, device in tensors.items() if device == "cpu"]
    others = {device for device in tensors.values() if device != "cpu"}
    if len(behind) == 1 and len(others) == 1 and "." not in behind[0]:
        (device,) = others
        return f'{behind[0]} = {behind[0]}.to("{device}"), where your own code makes it'
    if others and all(name.startswith("self.") for name in behind) and behind:
        return "move the model to the batch's device: model.to(...), before the optimizer is made"
    return FIX
