"""The host's peak is this machine's own; the answers about GPUs are recorded ones."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from diagnostics.collectors.system.host_memory import peak_memory

MIB = 2**20


class TestHost:
    @pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell")
    def test_is_the_most_that_was_ever_resident(self):
        code = (
            "from diagnostics.collectors.system.host_memory import peak_memory\n"
            "before, where = peak_memory()\n"
            "block = bytearray(b'x') * (64 * 2**20)\n"
            "del block\n"
            "print(where, (peak_memory()[0] - before) // 2**20)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        where, grown = done.stdout.split()
        assert where == "host"
        assert 60 <= int(grown) <= 68

    @pytest.mark.skipif(sys.platform != "linux", reason="only there a child begins with its parent's peak")
    def test_of_a_child_is_not_its_parents(self):
        block = bytearray(b"x") * (256 * MIB)
        code = "from diagnostics.collectors.system.host_memory import peak_memory; print(peak_memory()[0])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert int(done.stdout) < len(block)


class TestCard:
    def test_is_what_pytorch_reserved_on_all_of_them(self, monkeypatch):
        cuda = SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: True,
            device_count=lambda: 2,
            max_memory_reserved=lambda index: (index + 1) * MIB,
        )
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
        assert peak_memory() == (3 * MIB, "GPU")

    def test_is_what_tensorflow_used(self, monkeypatch):
        memory = {"GPU:0": {"current": 1, "peak": 5 * MIB}}
        config = SimpleNamespace(
            list_physical_devices=lambda kind: ["a GPU"],
            experimental=SimpleNamespace(get_memory_info=lambda name: memory[name]),
        )
        monkeypatch.delitem(sys.modules, "torch", raising=False)
        monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=config))
        assert peak_memory() == (5 * MIB, "GPU")

    def test_that_is_lost_leaves_the_hosts_figure(self, monkeypatch):
        def lost():
            raise RuntimeError("CUDA error: device-side assert triggered")

        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(is_available=lost)))
        monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
        assert peak_memory()[1] == "host"
