"""Tells a fault of this library from the end of the memory, which meets whoever asks for some next."""

from __future__ import annotations

from diagnostics.errors import message_of

_SAID = ("can't allocate memory", "not enough memory", "out of memory", "OOM when allocating")


def is_out_of_memory(fault: BaseException) -> bool:
    """Whether an exception only says that there is no memory left, on the host or on a device."""
    return isinstance(fault, MemoryError) or any(said in message_of(fault) for said in _SAID)
