"""Notes the norms by which a rank clips gradients that FullyShardedDataParallel has sharded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.facts.ranks.notes import ClippedNorm
from diagnostics.taps import torch as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

from .loaders import LoaderNotes


class ShardedClips:
    """The calls of `clip_grad_norm_` on sharded parameters.

    Attributes:
        fault: of this library, after which nothing more is noted; None without any.
        clipped: by number of optimizer steps before, of which 0 and the powers of two are looked at.
    """

    def __init__(self, loaders: LoaderNotes) -> None:
        """Prepare.

        Args:
            loaders: counts the optimizer steps.
        """
        self.fault: Exception | None = None
        self.clipped: dict[int, ClippedNorm] = {}
        self._loaders, self._guard = loaders, FaultGuard(on_fault=self._failed)
        self._sharded: IdentityMap[nn.Module, None] = IdentityMap()

    def attach(self) -> Unsubscribe:
        """Note from now on; return what ends it."""
        return subscribe(
            self._safely,
            (taps.sharded_init.after, self._made),
            (taps.clip_grads_with_norm.before, self._clips),
        )

    def _safely(self, work: Callable[..., None], /, *arguments: Any, **options: Any) -> None:
        if self.fault is None:
            self._guard.attempt(work, *arguments, **options)

    def _failed(self, fault: Exception) -> None:
        self.fault = fault

    def _made(self, _result: None, module: Any, *_: Any, **__: Any) -> None:
        self._sharded[module] = None

    def _clips(self, parameters: Any, max_norm: Any = 0.0, total_norm: Any = None, *_: Any, **__: Any) -> None:
        steps = self._loaders.steps
        if steps & (steps - 1) or steps in self.clipped:
            return
        given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
        first = next((one for one in given if one.grad is not None), None)
        if type(total_norm) is not Tensor or first is None or not self._is_sharded(first):
            return  # the norm of DTensors is one of all ranks
        self.clipped[steps] = ClippedNorm(float(total_norm), float(max_norm))

    def _is_sharded(self, parameter: Tensor) -> bool:
        for module in self._sharded:
            strategy = getattr(getattr(module, "sharding_strategy", None), "name", "NO_SHARD")
            is_shard = strategy != "NO_SHARD" and module.process_group.size() > 1
            if is_shard and any(one is parameter for one in module.parameters()):
                return True
        return False
