"""The batch in which NaN or infinity first appeared, to inspect or to save."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from .errors import InvalidInput


@dataclass(frozen=True, repr=False)
class FailedBatch:
    """The inputs of the model in the first step with NaN or infinity.

    Holds labels only if the model is called with them. Under gradient accumulation it is the micro-batch that
    produced the NaN or infinity or, if that is unknown, the last one of the step.

    Attributes:
        step: the step, counted from 0.
        fingerprint: 64 bits, equal for equal batches, as in `StepHistory`; None if unknown.
        size: number of examples; 0 if unknown.
        rows: the examples concerned, counted from 0; empty if unknown.
        args: positional arguments of the call: the tensors themselves, on their device, without a graph.
        kwargs: keyword arguments of the call.
        why_not: why the inputs were not kept; empty if they were.
        ending: extension of the files that `save` writes; the report shows it.
    """

    ending: ClassVar[str] = ".pt"

    step: int
    fingerprint: int | None
    size: int
    rows: tuple[int, ...] = ()
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    why_not: str = ""

    def save(self, path: str | Path) -> Path:
        """Save the batch with `torch.save`: a dict of ``args``, ``kwargs``, ``step``, ``fingerprint``, ``rows``.

            saved = torch.load("batch.pt")
            model(*saved["args"], **saved["kwargs"])

        Raises:
            InvalidInput: the inputs were not kept.
        """
        if self.why_not:
            raise InvalidInput(f"The batch of step {self.step} cannot be saved: {self.why_not}.")
        import torch

        content = {
            "args": self.args,
            "kwargs": dict(self.kwargs),
            "step": self.step,
            "fingerprint": self.fingerprint,
            "rows": self.rows,
        }
        torch.save(content, path)
        return Path(path)

    def __repr__(self) -> str:
        size = f"{self.size} examples" if self.size else "of unknown size"
        known = f", fingerprint {self.fingerprint}" if self.fingerprint is not None else ""
        concerned = f", rows {', '.join(map(str, self.rows))}" if self.rows else ""
        kept = f"not kept: {self.why_not}" if self.why_not else "kept"
        return f"<batch of step {self.step}: {size}{known}{concerned}; {kept}>"
