"""See `DtypeMismatch`."""

from __future__ import annotations

from collections.abc import Mapping

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, check
from diagnostics.facts.crash import CrashFacts, DtypesDiffer
from diagnostics.text.join import listed, not_known

MAX_TENSORS_NAMED = 6  # in the message; the evidence holds them all

_FROM_NUMPY = (
    "inputs = inputs.float()  # NumPy computes in float64, and torch.from_numpy keeps that dtype",
    "arrays = arrays.astype(numpy.float32)  # before torch.from_numpy",
)
_HALF = (
    "run the forward pass under torch.autocast, which casts the inputs of each operation",
    "inputs = inputs.to(model.dtype)",
)
_OF_TENSORFLOW = (
    "cast the tensor with the other dtype: x = tf.cast(x, tf.float32)",
    'create arrays with dtype="float32"',
    "if the error is in third-party code, install the releases of Keras and TensorFlow that it was written for: "
    "other releases order the arguments differently, so a tensor is mistaken for a size or an index",
)
_HALF_ON_CPU = (
    "use torch.bfloat16 on the CPU: model.to(torch.bfloat16)",
    "load the model in float32 on the CPU: from_pretrained(..., dtype=torch.float32)",
)


class DtypeMismatch(MessageRule):
    """An operation received tensors of different dtypes, or of a dtype that it does not support.

    ## What it does
    Recognises the error messages of PyTorch 0.4 to 2.13 and of TensorFlow, and determines from the stack frames
    which tensor has which dtype.

    ## Why it is bad
    PyTorch does not convert the operands of a matrix product or a convolution to a common dtype. There are four
    common causes: NumPy's float64, integer features that were never converted, a half-precision model that
    receives float32 inputs, and a target of the wrong type. Cross entropy requires class indices of type int64;
    binary cross entropy and squared errors require floating-point targets.

    ## Example
    ```python
    features = torch.from_numpy(table)           # float64
    model(features)                              # its weights are float32
    ```

    ## Instead
    ```python
    features = torch.from_numpy(table).float()
    model(features)
    ```

    ## Thresholds
    None: the rule fires only after an operation has failed.

    ## Known problems
    The finding lists tensors by the variable names in the failing function, which may differ from yours.

    ## Sources
    The documentation for `torch.nn.functional.cross_entropy` (target: class indices, int64) and
    `torch.nn.BCEWithLogitsLoss`; PyTorch, "Automatic mixed precision package".
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: DtypesDiffer) -> Finding | None:
        """Name the dtypes, and the tensors if the stack frames are available."""
        detail = f" In the failing function, {_by_dtype(symptom.tensors)}." if symptom.tensors else ""
        if not symptom.tensors and symptom.kind == "operands" and not symptom.got:
            detail = " " + not_known("the names of the tensors", crash.live)
        return self.found(
            f"{_seen(symptom)}{detail}",
            fix=_fix(symptom),
            evidence={
                "kind": symptom.kind,
                "got": symptom.got,
                "wanted": symptom.wanted,
                "operation": symptom.operation,
                "tensors": dict(symptom.tensors),
            },
            where=crash.where,
        )


def _seen(symptom: DtypesDiffer) -> str:
    got = symptom.got
    match symptom.kind:
        case "operands" if symptom.got and symptom.wanted:
            return (
                f"An operation got {got} and {symptom.wanted} tensors. It needs a single dtype and does not "
                "cast its inputs."
            )
        case "operands":
            return (
                "An operation got tensors of different dtypes. It needs a single dtype and does not cast its "
                "inputs."
            )
        case "indices":
            return (
                f"An embedding or indexing operation got {_kind_of('indices', got)}. Indices must be int64 (newer "
                "releases also accept int32), because they are row numbers."
            )
        case "classes":
            return (
                f"The loss got {_one_of('target', got)}, but expects class indices: one int64 value from 0 to "
                "C-1 per example."
            )
        case "target":
            return f"The loss got {_one_of('target', got)}, but needs floating-point targets."
        case "result":
            return (
                f"The result of an operation is {symptom.wanted or 'another dtype'}, which cannot be stored in "
                f"{_one_of('tensor', got)}: either a regression loss got integer targets, or an integer "
                "tensor is modified in place."
            )
        case "no kernel":
            return f"{symptom.operation} is not implemented for {got} on this device."
        case "integers":
            return f"An operation that needs floating-point values got {symptom.got or 'integers'}."


def _kind_of(noun: str, dtype: str | None) -> str:
    return f"{dtype} {noun}" if dtype else f"{noun} of another dtype"


def _one_of(noun: str, dtype: str | None) -> str:
    return f"{'an' if (dtype or '').startswith('int') else 'a'} {_kind_of(noun, dtype)}"


def _fix(symptom: DtypesDiffer) -> Fix:
    dtypes = {symptom.got, symptom.wanted}
    if symptom.library == "tensorflow" and symptom.kind == "operands":
        return _OF_TENSORFLOW
    match symptom.kind:
        case "indices":
            return (
                "indices = indices.long()",
                "check which argument holds the ids: floating-point values are probably another feature",
            )
        case "classes":
            return (
                "target = target.long()  # class indices",
                "if the target is not a class, use torch.nn.MSELoss() or torch.nn.BCEWithLogitsLoss()",
            )
        case "target":
            return "target = target.float()"
        case "result":
            return (
                "if the failing line calls a loss: target = target.float()",
                "write x = x + y instead of x += y",
                "in x.clamp_(0, n - 1), make n an integer: int(n) or n.long()",
            )
        case "no kernel" if symptom.got in ("float16", "bfloat16"):
            return _HALF_ON_CPU
        case "no kernel" | "integers":
            return "values = values.float() before the operation"
    if dtypes & {"float16", "bfloat16"}:
        return _HALF
    if "float64" in dtypes:
        return _FROM_NUMPY
    return "inputs = inputs.float()"


def _by_dtype(tensors: Mapping[str, str]) -> str:
    parts = []
    for dtype in dict.fromkeys(tensors.values()):
        names = [name for name, of in tensors.items() if of == dtype]
        verb = "is" if len(names) == 1 else "are"
        parts.append(f"{listed(names, most=MAX_TENSORS_NAMED)} {verb} {dtype}")
    return "; ".join(parts)
