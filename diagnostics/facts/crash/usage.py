"""Facts about exceptions that say how a library was used wrongly: dtypes, graphs, checkpoints, data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from diagnostics.facts.frozen import frozen


@frozen
class DtypesDiffer:
    """An operation got tensors of different dtypes, or of a dtype that it does not take.

    Attributes:
        kind: ``operands``: two tensors of one operation. ``indices``: ids for an embedding. ``classes``: a target
            that must be class indices. ``target``: a target that must be floating point. ``no kernel``: the
            operation is not implemented for the dtype on this device. ``integers``: integers where the operation
            needs floating point. ``result``: a result does not go into a tensor of integers, in a loss or in
            place.
        got: dtype of the tensor that does not fit, as in ``float64``; None if unknown.
        wanted: the dtype that the other tensor has, or the operation takes; None if unknown.
        operation: name of the kernel, where the message names one.
        tensors: dtype by variable name, for tensors in the frame that failed.
        library: whose wording it is: ``torch`` or ``tensorflow``.
    """

    kind: Literal["operands", "indices", "classes", "target", "result", "no kernel", "integers"]
    got: str | None = None
    wanted: str | None = None
    operation: str | None = None
    tensors: Mapping[str, str] = field(default_factory=dict)
    library: str = "torch"


@frozen
class CheckpointKeysDiffer:
    """A state dict and a model have different keys.

    Attributes:
        model: class name; empty if unknown.
        missing: keys of the model that the checkpoint lacks, in its order.
        unexpected: keys of the checkpoint that the model lacks.
    """

    model: str = ""
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()


UsageSymptom = DtypesDiffer | CheckpointKeysDiffer
