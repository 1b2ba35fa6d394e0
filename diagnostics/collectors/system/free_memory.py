"""Measures the memory that a device has left for this process."""

from __future__ import annotations

import math

import torch

from .host_memory import host_memory


def free_memory(device: torch.device) -> float:
    """Return the bytes that may still be allocated on a device; infinity if not known."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(torch.cuda.mem_get_info(device)[0] + unused)
    if device.type != "cpu":
        return math.inf
    return min((float(left) for _, left in host_memory()), default=math.inf)
