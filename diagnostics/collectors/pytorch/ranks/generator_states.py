"""Checksums of the global random generators: two ranks with the same one draw the same numbers next."""

from __future__ import annotations

import random
import sys
import zlib
from array import array

import torch


def generator_states() -> dict[str, int]:
    """Return a checksum of each generator's state, by name. Nothing is drawn, and no device is waited for."""
    states = {
        "torch": zlib.crc32(torch.get_rng_state().numpy().tobytes()),
        "random": zlib.crc32(array("Q", random.getstate()[1]).tobytes()),
    }
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        state = numpy_random.get_state(legacy=False)
        inner = state["state"]
        if state["bit_generator"] == "MT19937":  # a script may have set another one
            states["numpy"] = zlib.crc32(inner["key"].tobytes(), int(inner["pos"]))
    if torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():
        states["cuda"] = zlib.crc32(torch.cuda.get_rng_state().numpy().tobytes())
    return states
