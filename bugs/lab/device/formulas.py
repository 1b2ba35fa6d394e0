"""Two operations that PyTorch computes differently from one device to the next, as it computes them on the CPU.

Without these the results of a simulated device would differ from the CPU's in their last bits.
"""

from __future__ import annotations

from typing import Any

import torch

aten = torch.ops.aten
_flashes: dict[tuple[Any, ...], bool] = {}  # by layouts; at most some dozens


def dropout(values: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """Drop with the CPU's arithmetic: for other devices PyTorch uses a fused kernel that rounds otherwise."""
    if p == 0 or not train or values.numel() == 0:
        return values
    if p == 1:
        return values.mul(torch.zeros_like(values))
    return values.mul(torch.empty_like(values).bernoulli_(1 - p).div_(1 - p))


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """Attend with the kernel that the CPU would choose; for other devices PyTorch chooses a slower one."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(~attn_mask, float("-inf"))
    fitting = all(x.dim() == 4 for x in (query, key, value)) and not enable_gqa and dropout_p == 0.0
    if fitting and _flash(query, key, value, attn_mask, is_causal, scale):
        return aten._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
        )[0]
    return aten._scaled_dot_product_attention_math(
        query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
    )[0]


def _flash(query: Any, key: Any, value: Any, mask: Any, is_causal: bool, scale: float | None) -> bool:
    if mask is not None and mask.requires_grad:
        return False
    layouts = tuple(None if x is None else x.place.layout for x in (query, key, value, mask))
    asked = (*layouts, is_causal, scale)
    if asked not in _flashes:  # real stand-ins: for fake ones the answer is always no
        stand_ins = [None if layout is None else layout.stand_in() for layout in layouts]
        choice = torch._fused_sdp_choice(*stand_ins, 0.0, is_causal, scale=scale)
        _flashes[asked] = choice == int(torch.nn.attention.SDPBackend.FLASH_ATTENTION.value)
    return _flashes[asked]
