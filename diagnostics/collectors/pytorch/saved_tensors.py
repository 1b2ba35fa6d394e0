"""Reads what the nodes of an autograd graph saved for the backward pass, and runs no code of the script's."""

from __future__ import annotations

from typing import Any


def saved(node: Any, name: str) -> Any:
    """Return what a node saved under a name: a tensor, a tuple of them, a number or a shape.

    None where nothing is saved, where the tensor was freed or changed in place, and where only a hook of the
    script's could return it: a checkpointed block would be computed again, and offloading may hand out each tensor
    once. What is saved by a `torch.autograd.Function` is not read.
    """
    raw = getattr(node, f"_raw_saved_{name}", None)
    for one in raw if isinstance(raw, tuple) else (raw,):
        # PyTorch says which hooks a tensor has since `unpack_hook` exists; before, it may have some.
        if one is not None and getattr(one, "unpack_hook", one) is not None:
            return None
    try:
        return getattr(node, f"_saved_{name}", None)
    except RuntimeError:  # freed, or changed in place since
        return None


def saved_names(node: Any) -> list[str]:
    """Return the names of all that a node saved."""
    return [name.removeprefix("_saved_") for name in dir(node) if name.startswith("_saved_")]
