"""Keeps the weights of the last finite pass, without synchronising with the device."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.local_tensors import local

LIMIT = 512 * 2**20  # bytes of weights; a model that is larger is not copied


class WeightSnapshot:
    """A copy of the weights, updated before each step until something is not finite.

    Costs the memory of the weights once, on an accelerator twice, where the copy is written under a condition
    that the device itself evaluates: nothing is read back.

    Args:
        parameters: by name. Of distributed ones the part of this process is copied.
        deferred: whether the condition will be a tensor that must not be waited for.
    """

    def __init__(self, parameters: Mapping[str, nn.Parameter], deferred: bool) -> None:
        self._names = list(parameters)
        self._parameters = [local(parameter).detach() for parameter in parameters.values()]
        self.taken = False
        kinds: dict[tuple[torch.device, torch.dtype], list[int]] = {}
        for index, parameter in enumerate(self._parameters):
            kinds.setdefault((parameter.device, parameter.dtype), []).append(index)
        self._kept: list[Tensor] = []
        self._staged: list[Tensor] = []
        self._views: list[Tensor] = [torch.empty(0)] * len(self._parameters)
        self._staged_views: list[Tensor] = list(self._views)
        for (device, dtype), members in kinds.items():
            size = sum(self._parameters[index].numel() for index in members)
            self._kept.append(self._cut(torch.empty(size, dtype=dtype, device=device), members, self._views))
            if deferred:
                staged = torch.empty_like(self._kept[-1])
                self._staged.append(self._cut(staged, members, self._staged_views))

    def take(self, good: Tensor | bool) -> None:
        """Copy the weights if `good`, a bool or a tensor () of one on the device, is true.

        Once it was false, no later call may pass true: what is held would no longer be from before.
        """
        with torch.no_grad():
            if not isinstance(good, Tensor):
                if good:
                    torch._foreach_copy_(self._views, self._parameters)
            else:
                torch._foreach_copy_(self._staged_views, self._parameters)
                for kept, staged in zip(self._kept, self._staged, strict=True):
                    torch.where(good.to(kept.device), staged, kept, out=kept)
        self.taken = True

    def weights(self) -> dict[str, Tensor]:
        """Return the copies, by name and in the parameters' shapes; views."""
        return dict(zip(self._names, self._views, strict=True))

    def _cut(self, whole: Tensor, members: list[int], views: list[Tensor]) -> Tensor:
        start = 0
        for index in members:
            parameter = self._parameters[index]
            views[index] = whole[start : start + parameter.numel()].view(parameter.shape)
            start += parameter.numel()
        return whole


def fits(parameters: Mapping[str, nn.Parameter], limit: int = LIMIT) -> bool:
    """Whether the parameters are small enough to be copied, and have values at all."""
    return nbytes(parameters) <= limit and not any(p.is_meta for p in parameters.values())


def nbytes(parameters: Mapping[str, nn.Parameter]) -> int:
    """Return the bytes that this process holds of the parameters."""
    return sum(local(parameter).nbytes for parameter in parameters.values())
