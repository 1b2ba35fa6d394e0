"""See `DeviceMismatch`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, check
from diagnostics.facts.crash import CrashFacts, DevicesDiffer
from diagnostics.text.join import listed, not_known

MAX_TENSORS_NAMED = 6  # in the message; the evidence holds them all

DEVICE = "with device = next(model.parameters()).device"
FIX = (
    f"move the batch to the model's device: x, y = x.to(device), y.to(device), {DEVICE}",
    f"if the batch is a dict: batch = {{name: x.to(device) for name, x in batch.items()}}, {DEVICE}",
)
MODEL = "move the model to the batch's device: model.to(...), before the optimizer is created"
LOSS_WEIGHTS = ("weight", "pos_weight")  # arguments of PyTorch's losses
CRITERION = "criterion.to(device), if the loss is a module: this also moves its class weights, which are a buffer"
LINEAR = {"mat1": "the layer's input", "mat2": "the layer's weight"}  # of addmm, which a Linear calls
_ONE_OF_TWO = re.compile(
    r"Input type \((?P<input>[^)]{1,40})\) and (?:weight|bias) type \((?P<layer>[^)]{1,40})\)"
)
_FUNCTIONAL = re.compile(r"torch[\\/]nn[\\/]functional\.py$")
_IN_LINEAR = re.compile(r"torch[\\/]nn[\\/](?:modules[\\/]linear|functional)\.py$")


class DeviceMismatch(MessageRule):
    """An operation received tensors on different devices.

    ## What it does
    Recognises the error message and determines from the stack frames which tensor is on which device.

    ## Why it is bad
    An operation reads the memory of only one device. PyTorch does not copy tensors between devices implicitly,
    because a hidden copy at every step would be slow. The error message names the devices, but rarely the tensor
    that was not moved.

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
    None: the rule fires only after an operation has failed.

    ## Known problems
    The finding lists tensors by the variable names in the failing function, which may differ from yours. It also
    lists zero-dimensional CPU tensors, which PyTorch lets you mix with tensors on other devices.

    ## Sources
    PyTorch's notes on "CUDA semantics" ("cross-GPU operations are not allowed by default").
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: DevicesDiffer) -> Finding | None:
        """Name the tensors and their devices, or the devices alone."""
        devices = symptom.devices or tuple(dict.fromkeys(symptom.tensors.values()))
        on = listed(devices) if devices else "different devices"
        detail = f": {_by_device(symptom.tensors)}" if symptom.tensors else ""
        if _in_optimizer(crash):
            return self.found(
                f"An optimizer step got tensors on {on}{detail}. The optimizer's state (momentum, exp_avg) and "
                "the weights are on different devices: the state was created or loaded before the model was "
                "moved.",
                fix=(
                    "call model.to(device), then create the optimizer, then call optimizer.load_state_dict(state)",
                    "after loading the optimizer state: for state in optimizer.state.values(): state.update({key: "
                    "value.to(device) for key, value in state.items() if torch.is_tensor(value)})",
                ),
                evidence={"devices": list(devices), "tensors": dict(symptom.tensors)},
                where=crash.where,
            )
        if not symptom.tensors and "indexed tensor (cpu)" in crash.message:
            return self.found(
                "A tensor on the CPU is indexed by a tensor on a GPU: in x[i], x was left on the CPU. Either x "
                "is a table that does not move with the model, or it is a mask created without device=.",
                fix=(
                    "x.to(i.device)[i]",
                    "x[i.cpu()], if the result is needed on the CPU",
                    'self.register_buffer("table", table) in __init__, if the table belongs to a module: '
                    "model.to(device) then moves it too",
                ),
                evidence={"devices": list(devices), "tensors": {}},
                where=crash.where,
            )
        if not symptom.tensors and (which := _ONE_OF_TWO.search(crash.message)) is not None:
            return self._layer_or_input(crash, symptom, which["input"], which["layer"])
        if not symptom.tensors and "meta" in devices:
            return self.found(
                f"An operation got tensors on {on}. A tensor on the meta device has a shape, but no data: some "
                "weights were never loaded, or were offloaded, because the model did not fit on the GPU.",
                fix=(
                    "if device_map was set: device_map={'': 0}, or a smaller or quantised model that fits, so "
                    "that nothing is offloaded",
                    "if the model was created under init_empty_weights or torch.device('meta'): load its weights "
                    "with load_checkpoint_and_dispatch, or load_state_dict(state, assign=True)",
                    "low_cpu_mem_usage=False in from_pretrained, and no .to(device) on a model with a device_map",
                ),
                evidence={"devices": list(devices), "tensors": {}},
                where=crash.where,
            )
        if not symptom.tensors and len(devices) > 1 and all(device.startswith("cuda:") for device in devices):
            return self.found(
                f"An operation got tensors on two GPUs, {on}. Either the model itself is spread over several GPUs "
                "(device_map='auto', or layers moved by hand), or some code (a layer, a loss or a library) "
                "creates tensors on one fixed GPU, with .cuda(), device='cuda' or device='cuda:0'. "
                f"{not_known('the names of the tensors', crash.live)}",
                fix=(
                    "set CUDA_VISIBLE_DEVICES=0, if the code was written for one GPU",
                    "set device_map={'': 0}, if device_map='auto' spreads the model over multiple GPUs",
                    "use device=x.device for tensors created in forward() or in the loss, and register_buffer "
                    "for lookup tables",
                    "call torch.cuda.set_device(local_rank) first, if each GPU has its own process",
                ),
                evidence={"devices": list(devices), "tensors": {}},
                where=crash.where,
            )
        if not symptom.tensors and symptom.odd is not None:
            return self._odd(crash, symptom, *symptom.odd)
        unknown = "" if symptom.tensors else " " + not_known("the names of the tensors", crash.live)
        return self.found(
            f"An operation got tensors on {on}{detail}. All tensors in an operation must be on the same "
            f"device.{unknown}",
            fix=_fix(crash, symptom),
            evidence={"devices": list(devices), "tensors": dict(symptom.tensors)},
            where=crash.where,
        )

    def _layer_or_input(self, crash: CrashFacts, symptom: DevicesDiffer, given: str, layer: str) -> Finding:
        """Tell which of the two was left on the CPU: the names of their types say it."""
        behind = "cuda" in given.lower() or given.startswith("MPS")
        seen = "the layer's weights are on the CPU" if behind else "the input is on the CPU"
        ahead = "the input is on the GPU" if behind else "the layer's weights are on the GPU"
        also = "if only one layer is left behind, it is in a plain list or dict: nn.ModuleList, nn.ModuleDict"
        return self.found(
            f"A layer got an input of type {given}, but has weights of type {layer}: {seen}, and {ahead}. All "
            "tensors in an operation must be on the same device.",
            fix=(MODEL, also) if behind else FIX,
            evidence={"devices": list(symptom.devices), "tensors": {}},
            where=crash.where,
        )

    def _odd(self, crash: CrashFacts, symptom: DevicesDiffer, name: str, device: str) -> Finding:
        others = listed(other for other in symptom.devices if other != device)
        what = LINEAR.get(name, "") if crash.frames and _IN_LINEAR.search(crash.frames[-1].file) else ""
        left = name in ("mat2", "weight", "bias") if device == "cpu" else name in ("mat1", "input", "index")
        called = f"its argument {name}, {what}," if what else f"its argument {name}"
        return self.found(
            f"An operation got tensors on {listed(symptom.devices)}: {called} is on {device}, and the other "
            f"arguments are on {others}. All tensors in an operation must be on the same device.",
            fix=(MODEL, *FIX) if left else FIX,
            evidence={"devices": list(symptom.devices), "tensors": {name: device}},
            where=crash.where,
        )


def _in_optimizer(crash: CrashFacts) -> bool:
    """Return whether the update itself failed: a closure runs user code inside the optimizer's step."""
    last = crash.frames[-1].file.replace("\\", "/") if crash.frames else ""
    return re.search(r"(?:^|/)(?:torch|apex|timm)/optim\w*/", last) is not None


def _by_device(tensors: Mapping[str, str]) -> str:
    parts = []
    for device in dict.fromkeys(tensors.values()):
        names = [name for name, place in tensors.items() if place == device]
        parts.append(f"{listed(names, most=MAX_TENSORS_NAMED)} on {device}")
    return "; ".join(parts)


def _fix(crash: CrashFacts, symptom: DevicesDiffer) -> Fix:
    """Return the line that moves the tensor on the CPU, if there is only one."""
    behind = [name for name, device in symptom.tensors.items() if device == "cpu"]
    others = {device for device in symptom.tensors.values() if device != "cpu"}
    of_loss = len(behind) == 1 and behind[0] in LOSS_WEIGHTS and _in_loss(crash)
    if others and behind and not of_loss and set(behind) <= set(symptom.registered):
        return MODEL
    if len(behind) == 1 and len(others) == 1:
        (device,) = others
        line = f'{behind[0]} = {behind[0]}.to("{device}"), where your code creates it'
        return (line, CRITERION) if of_loss else line
    return FIX


def _in_loss(crash: CrashFacts) -> bool:
    """Return whether a loss of PyTorch failed."""
    inside = (frame.function for frame in crash.frames if _FUNCTIONAL.search(frame.file))
    return any(re.search(r"loss|cross_entropy", function) for function in inside)
