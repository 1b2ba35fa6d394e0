import pytest

from diagnostics.collectors.isolation.guard import is_out_of_memory


class TestRanOutOfMemory:
    @pytest.mark.parametrize(
        "error",
        [
            MemoryError(),
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory"
            ),
            RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."),
            RuntimeError("OOM when allocating tensor with shape[90,262144] and type float"),
        ],
    )
    def test_knows_each_frameworks_words(self, error):
        assert is_out_of_memory(error)

    @pytest.mark.parametrize("error", [ValueError("no such rule"), KeyError("memory"), RuntimeError("")])
    def test_another_fault_is_one(self, error):
        assert not is_out_of_memory(error)
