"""Who holds a GPU, from answers recorded of NVIDIA's library, and from this machine's own processes."""

import importlib
from types import SimpleNamespace

import pytest

from diagnostics.collectors.system import nvml
from diagnostics.collectors.system.nvml import NoCards, cards, described
from diagnostics.facts.gpu import CardFacts, Holder

GIB = 2**30


class NVMLError(Exception):
    """As in pynvml."""


class Recorded:
    """Answers as the module `pynvml` does, with what it answered once on a machine with two GPUs."""

    NVMLError = NVMLError

    def __init__(self, *, count=1, name="NVIDIA A10", compute=(), graphics=(), refuses=False, driver=True):
        self.count, self.name, self.compute, self.graphics = count, name, compute, graphics
        self.refuses, self.driver, self.open = refuses, driver, 0

    def nvmlInit(self):
        if not self.driver:
            raise NVMLError("Driver Not Loaded")
        self.open += 1

    def nvmlShutdown(self):
        self.open -= 1

    def nvmlDeviceGetCount(self):
        return self.count

    def nvmlSystemGetDriverVersion(self):
        return "550.54.15"

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetName(self, handle):
        return self.name

    def nvmlDeviceGetMemoryInfo(self, handle):
        return SimpleNamespace(total=24 * GIB, free=3 * GIB, used=21 * GIB)

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        if self.refuses:
            raise NVMLError("Insufficient Permissions")
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in self.compute]

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle):
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in self.graphics]


GONE = 2**22 + 1  # no process can have this number: it is past the largest


class TestCards:
    def test_are_described_with_those_that_hold_them_largest_first(self):
        library = Recorded(compute=[(GONE, GIB), (GONE + 1, 20 * GIB)], graphics=[(GONE + 2, None)])
        assert cards(library) == (
            CardFacts(
                0,
                "NVIDIA A10",
                24 * GIB,
                3 * GIB,
                (Holder(GONE + 1, 20 * GIB), Holder(GONE, GIB), Holder(GONE + 2, None)),
                "550.54.15",
            ),
        )
        assert library.open == 0

    def test_are_all_there_and_have_names_in_old_versions_too(self):
        assert [(card.index, card.name) for card in cards(Recorded(count=2, name=b"NVIDIA A10"))] == [
            (0, "NVIDIA A10"),
            (1, "NVIDIA A10"),
        ]

    def test_that_do_not_tell_their_processes_are_described_without(self):
        (card,) = cards(Recorded(refuses=True, graphics=[(GONE, GIB)]))
        assert card.holders == (Holder(GONE, GIB),)

    def test_are_missed_in_one_line_without_a_driver(self):
        with pytest.raises(NoCards, match=r"^No NVIDIA driver answers here \(Driver Not Loaded\)") as raised:
            cards(Recorded(driver=False))
        assert raised.value.looked

    def test_are_missed_in_one_line_without_a_card(self):
        library = Recorded(count=0)
        with pytest.raises(NoCards, match="knows of no GPU"):
            cards(library)
        assert library.open == 0

    @pytest.mark.parametrize(
        ("driver", "message"),
        [
            (False, "No NVIDIA driver is installed here, so there is no GPU to look at."),
            (
                True,
                "Which process holds a GPU can be read only through nvidia-ml-py, which is not installed: "
                "pip install nvidia-ml-py",
            ),
        ],
    )
    def test_cannot_be_asked_without_the_package(self, monkeypatch, driver, message):
        def missing(name):
            raise ImportError(name)

        monkeypatch.setattr(importlib, "import_module", missing)
        monkeypatch.setattr(nvml, "_driver_is_there", lambda: driver)
        with pytest.raises(NoCards) as raised:
            cards()
        assert str(raised.value) == message
        assert raised.value.looked is not driver


class TestDescribed:
    def test_adds_nothing_for_a_process_that_cannot_be_seen(self):
        assert described(Holder(GONE, GIB)) == Holder(GONE, GIB)

    @pytest.mark.parametrize(
        ("library", "frameworks"),
        [
            ("/env/tensorflow/libtensorflow_cc.so.2", ("TensorFlow",)),
            ("/env/torch/lib/libtorch_cuda.so", ("PyTorch",)),
            ("/env/jaxlib/libjax_common.so", ("JAX",)),
            ("/usr/lib/libc.so.6", ()),
        ],
    )
    def test_knows_a_framework_by_its_libraries(self, tmp_path, library, frameworks):
        folder = tmp_path / "4711"
        folder.mkdir()
        (folder / "maps").write_text(f"7f4e3d288000-7f4e3d289000 r-xp 00000000 08:01 42   {library}\n")
        (folder / "cmdline").write_bytes(b"python\0train.py\0--lr\x001e-3\0")
        holder = described(Holder(4711), proc=tmp_path)
        assert holder.frameworks == frameworks
        assert holder.command == "python train.py --lr 1e-3"
