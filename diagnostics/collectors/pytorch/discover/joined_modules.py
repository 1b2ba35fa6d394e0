"""Joins the modules that a loop calls one by one into one model."""

from __future__ import annotations

from torch import nn

NAMED = 3  # modules, in the name of the model


class _Joined(nn.Module):  # type: ignore[misc]  # mypy does not follow torch
    """One model of the modules that a loop calls one by one; never called itself."""

    def __init__(self, modules: list[nn.Module]) -> None:
        super().__init__()
        for number, module in enumerate(modules):
            self.add_module(f"{type(module).__name__}-{number}", module)


def joined(modules: list[nn.Module]) -> nn.Module:
    """Combine modules into one, named "Encoder and Decoder" in a report."""
    names = list(dict.fromkeys(type(module).__name__ for module in modules))
    others = len(names) - NAMED
    name = " and ".join([*names[:NAMED], *([f"{others} more"] if others > 0 else [])])
    return type(name, (_Joined,), {})(modules)
