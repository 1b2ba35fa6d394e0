"""The bytes of the device, without a device."""

from __future__ import annotations

import pytest
import torch

from bugs.lab.device.memory import Memory, in_units


class TestMemory:
    def test_a_block_counts_until_it_is_let_go(self):
        memory = Memory(100)
        block = memory.block(60)
        assert (memory.allocated, memory.peak) == (60, 60)
        del block
        assert (memory.allocated, memory.peak) == (0, 60)
        memory.reset_peak()
        assert memory.peak == 0

    def test_exactly_the_capacity_fits(self):
        memory = Memory(100)
        block = memory.block(100)
        assert memory.allocated == block.size == 100

    def test_a_byte_more_does_not(self):
        memory = Memory(2 * 1024**3)
        block = memory.block(1536 * 1024**2)
        with pytest.raises(torch.OutOfMemoryError) as raised:
            memory.block(512 * 1024**2 + 1)
        assert str(raised.value) == (
            "CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 2.00 GiB of which "
            "512.00 MiB is free. Of the allocated memory 1.50 GiB is allocated by PyTorch, and 0 bytes is "
            "reserved by PyTorch but unallocated. (GPU 0 is simulated.)"
        )
        assert memory.allocated == block.size


class TestInUnits:
    @pytest.mark.parametrize(
        ("size", "text"),
        [
            (0, "0 bytes"),
            (1024, "1024 bytes"),
            (1536, "1.50 KiB"),
            (20 * 1024**2, "20.00 MiB"),
            (2**31, "2.00 GiB"),
        ],
    )
    def test_it_speaks_as_the_allocator_does(self, size, text):
        assert in_units(size) == text
