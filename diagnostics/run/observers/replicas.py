"""Observes the models that a script shares between its ranks, by DistributedDataParallel."""

from __future__ import annotations

import contextlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from diagnostics.collectors.isolation.import_hooks import after_import
from diagnostics.collectors.isolation.patching import Patches
from diagnostics.errors import message_of
from diagnostics.facts.ranks.replicas import Sample, WrapperFacts

if TYPE_CHECKING:
    from diagnostics.collectors.pytorch.replicas import ReplicaNotes


class ReplicaObserver:
    """Observes from its creation on, once PyTorch is imported."""

    def __init__(self, at_close: contextlib.ExitStack) -> None:
        self._notes: ReplicaNotes | None = None
        self._patches, self._at_close = Patches(), at_close
        self._fault: Exception | None = None
        at_close.callback(self._patches.undo)
        at_close.callback(after_import("torch.nn.parallel.distributed", self._with_torch))

    def _with_torch(self, module: ModuleType) -> None:
        self._kind = module.DistributedDataParallel
        self._patches.after(module.DistributedDataParallel, "__init__", self._made)

    def _made(self, wrapper: Any, *_: Any, result: Any = None, **__: Any) -> None:
        """Begin with the first wrapper: a script without one imports nothing more."""
        try:
            if self._notes is None:
                from diagnostics.collectors.pytorch.replicas import ReplicaNotes

                self._notes = ReplicaNotes()
                self._at_close.callback(self._notes.close)
                self._notes.attach(self._kind, self._patches)
            self._notes.add(wrapper)
        except Exception as fault:
            self._fault = fault

    @property
    def fault(self) -> str | None:
        """What ended the comparison, if this library failed."""
        fault = self._fault or (None if self._notes is None else self._notes.fault)
        return None if fault is None else f"comparing ranks ended: {type(fault).__name__}: {message_of(fault)}"

    def called(self, module: Any) -> None:
        """Take note of a module that the script calls, see `ReplicaNotes.called`."""
        if self._notes is not None:
            self._notes.called(module)

    def facts(self) -> WrapperFacts | None:
        """Return how the script calls its wrapped model; None if it has none."""
        return None if self._notes is None else self._notes.facts()

    def samples(self) -> tuple[str, dict[int, Sample]] | None:
        """Return class and samples of the wrapped model; None if there is none."""
        return None if self._notes is None else self._notes.samples()
