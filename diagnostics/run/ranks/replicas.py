"""Observes what a rank may have in common with the others: a shared model, its loaders, sharded gradients."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from diagnostics.collectors.isolation.import_hooks import after_import
from diagnostics.errors import message_of
from diagnostics.facts.ranks.notes import RankNotes
from diagnostics.facts.ranks.replicas import WrapperFacts

if TYPE_CHECKING:
    from diagnostics.collectors.pytorch.ranks.hand_averaged import HandAveraged
    from diagnostics.collectors.pytorch.ranks.loaders import LoaderNotes
    from diagnostics.collectors.pytorch.ranks.replicas import ReplicaNotes
    from diagnostics.collectors.pytorch.ranks.sharded_clips import ShardedClips


_OTHERS = ("bagua", "byteps", "deepspeed", "hivemind", "horovod", "mpi4py")  # they average by other ways


class ReplicaObserver:
    """Observes from its creation on, once PyTorch is imported.

    Attributes:
        hears_collectives: whether `collective` is called, so that none is missed.
    """

    hears_collectives = False

    def __init__(self, at_close: contextlib.ExitStack, world: int) -> None:
        """Prepare.

        Args:
            at_close: takes what is to be undone.
            world: number of ranks.
        """
        self._notes: ReplicaNotes | None = None
        self._loaders: LoaderNotes | None = None
        self._clips: ShardedClips | None = None
        self._by_hand: HandAveraged | None = None
        self._at_close, self._world = at_close, world
        self._fault: Exception | None = None
        at_close.callback(after_import("torch", self._with_torch))
        at_close.callback(after_import("torch.distributed.fsdp.fully_sharded_data_parallel", self._with_sharding))

    def _with_torch(self, torch: ModuleType) -> None:
        if not hasattr(torch, "nn"):
            return  # the script has its own `torch.py`
        try:
            from diagnostics.collectors.pytorch.ranks.hand_averaged import HandAveraged
            from diagnostics.collectors.pytorch.ranks.loaders import LoaderNotes
            from diagnostics.taps.torch import replica_init

            self._at_close.callback(replica_init.after.subscribe(self._made))
            self._by_hand = HandAveraged()
            self._at_close.callback(self._by_hand.attach())
            self._loaders = LoaderNotes(self._world)
            self._at_close.callback(self._loaders.attach())
        except Exception as fault:
            self._fault = fault

    def _with_sharding(self, _module: ModuleType) -> None:
        try:
            from diagnostics.collectors.pytorch.ranks.sharded_clips import ShardedClips

            if self._loaders is not None:
                self._clips = ShardedClips(self._loaders)
                self._at_close.callback(self._clips.attach())
        except Exception as fault:
            self._fault = fault

    def _made(self, _result: None, wrapper: Any, *_: Any, **__: Any) -> None:
        """Begin with the first wrapper: a script without one imports nothing more."""
        try:
            if self._notes is None:
                from diagnostics.collectors.pytorch.ranks.replicas import ReplicaNotes

                self._notes = ReplicaNotes()
                self._at_close.callback(self._notes.attach())
            self._notes.add(wrapper)
        except Exception as fault:
            self._fault = fault

    @property
    def fault(self) -> str | None:
        """What ended the comparison, if this library failed."""
        parts = self._notes, self._loaders, self._clips, self._by_hand
        faults = [self._fault, *(part.fault for part in parts if part is not None)]
        fault = next((one for one in faults if one is not None), None)
        return None if fault is None else f"comparing ranks ended: {type(fault).__name__}: {message_of(fault)}"

    def called(self, module: Any) -> None:
        """Take note of a module that the script calls, see `ReplicaNotes.called`."""
        if self._notes is not None:
            self._notes.called(module)
        elif self._by_hand is not None:
            self._by_hand.called(module)

    def collective(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Take note of a collective, see `HandAveraged.collective`."""
        if self._notes is None and self._by_hand is not None:
            self._by_hand.collective(name, arguments, options)

    def facts(self) -> WrapperFacts | None:
        """Return how the script calls its wrapped model; None if it has none."""
        return None if self._notes is None else self._notes.facts()

    def epochs(self) -> tuple[tuple[int, ...], int]:
        """Return how many batches each iteration over a loader gave, see `LoaderNotes.epochs`."""
        if self._loaders is None or (self._notes is not None and self._notes.joined):
            return (), 0
        return self._loaders.epochs()

    @property
    def _trains_apart(self) -> bool:
        """Whether the rank trains on its share of the rows, and nothing seen might average the replicas."""
        if self._by_hand is None or self._loaders is None or not self.hears_collectives:
            return False
        if any(name in sys.modules for name in _OTHERS):
            return False
        return self._loaders.shares_out and not self._by_hand.may_be_averaged

    def filled(self, notes: RankNotes) -> RankNotes:
        """Return the notes of this rank, with what was observed."""
        if self._notes is not None:
            model, samples = self._notes.samples() or ("", {})
            notes = dataclasses.replace(notes, model=model, samples=samples, joined=self._notes.joined)
        elif self._by_hand is not None and self._by_hand.averaged:
            model, samples = self._by_hand.model, self._by_hand.samples
            notes = dataclasses.replace(notes, model=model, samples=samples, by_hand=True)
        elif self._trains_apart and self._by_hand is not None:
            model, samples = self._by_hand.model, self._by_hand.samples
            notes = dataclasses.replace(notes, model=model, samples=samples, apart=True)
        if self._loaders is not None:
            iterations, batches = self._loaders.iterations(), self._loaders.batches
            notes = dataclasses.replace(notes, iterations=iterations, batches=batches)
        return notes if self._clips is None else dataclasses.replace(notes, clipped=self._clips.clipped)
