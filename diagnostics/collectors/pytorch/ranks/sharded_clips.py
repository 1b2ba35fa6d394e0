"""Notes the norms by which a rank clips gradients that FullyShardedDataParallel has sharded."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.utils import clip_grad

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.isolation.patching import Patches
from diagnostics.facts.ranks.notes import ClippedNorm

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

    def attach(self, kind: type, patches: Patches) -> None:
        """Note from now on, until the patches are undone.

        Args:
            kind: FullyShardedDataParallel.
            patches: take those of the class and of `clip_grad_norm_`.
        """
        patches.after(kind, "__init__", self._made)
        # Within `clip_grad_norm_`, where the parameters are a list, and no generator.
        if hasattr(clip_grad, "_clip_grads_with_norm_"):
            patches.before(clip_grad, "_clip_grads_with_norm_", self._clips)

    def _failed(self, fault: Exception) -> None:
        self.fault = fault

    def _made(self, module: Any, *_: Any, result: Any = None, **__: Any) -> None:
        if self.fault is None and not is_own_run():
            self._sharded[module] = None

    def _clips(self, parameters: Any, max_norm: Any = 0.0, total_norm: Any = None, *_: Any, **__: Any) -> None:
        steps = self._loaders.steps
        if self.fault is None and steps & (steps - 1) == 0 and steps not in self.clipped and not is_own_run():
            self._guard.attempt(self._note, steps, parameters, max_norm, total_norm)

    def _note(self, steps: int, parameters: Any, max_norm: Any, total_norm: Any) -> None:
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
