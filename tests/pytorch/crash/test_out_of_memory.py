"""Memory that ran out: real failures of the host's memory and of TensorFlow's allocator, and recorded sentences.

The sentences about cards are PyTorch's, TensorFlow's and the shells', as users have posted them.
"""

import json
import os
import subprocess
import sys
import textwrap

import pytest

import diagnostics
from diagnostics.collectors.crash.out_of_memory import GPU_ALLOCATOR_ON_CPU as BFC_ON_CPU
from diagnostics.collectors.crash.read import facts_of_exception
from diagnostics.collectors.system import nvml
from diagnostics.facts.crash.memory import OutOfMemoryCrash
from diagnostics.facts.gpu import CardFacts, Holder
from tests.support.crashes import facts_of_text, symptom_of_text

MIB, GIB = 2**20, 2**30
BEFORE_1_5 = (
    "RuntimeError: CUDA out of memory. Tried to allocate 50.00 MiB (GPU 0; 6.00 GiB total capacity; 693.00 MiB "
    "already allocated; 3.50 GiB free; 18.00 MiB cached)"
)
BEFORE_2_1 = (
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 6.00 GiB total capacity; 781.00 MiB "
    "already allocated; 1.00 GiB free; 1.50 GiB reserved in total by PyTorch) If reserved memory is >> allocated "
    "memory try setting max_split_size_mb to avoid fragmentation."
)
SINCE_2_1 = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 138.00 MiB. GPU 0 has a total capacty of "
    "16.00 GiB of which 8.00 MiB is free. Process 1246069 has 14.00 GiB memory in use. Including non-PyTorch "
    "memory, this process has 1.25 GiB memory in use. Of the allocated memory 1.00 GiB is allocated by PyTorch, "
    "and 128.00 MiB is reserved by PyTorch but unallocated."
)
LATEST = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.00 GiB. GPU 0 has a total capacity of 31.50 "
    "GiB of which 12.50 GiB is free. Including non-PyTorch memory, this process has 18.00 GiB memory in use. Of "
    "the allocated memory 9.00 GiB is allocated by PyTorch, and 8.50 GiB is reserved by PyTorch but unallocated."
)
SIMULATED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 64.00 "
    "MiB of which 512 bytes is free. Of the allocated memory 63.00 MiB is allocated by PyTorch, and 0 bytes is "
    "reserved by PyTorch but unallocated. (GPU 0 is simulated.)"
)
TF_TENSOR = (
    "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with "
    "shape[256,512,512] and type half on /job:localhost/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc "
    "[Op:Mul]"
)
TF_REPORT = """\
W0000 bfc_allocator.cc:502] Allocator (GPU_0_bfc) ran out of memory trying to allocate 152.00MiB
I0000 bfc_allocator.cc:1117] Sum Total of in-use chunks: 272.00MiB
I0000 bfc_allocator.cc:1119] Total size in pool: 290.00MiB memory_limit_: 300.00MiB available size: 10.00MiB curr
Traceback (most recent call last):
  File "/home/ada/train.py", line 3, in <module>
    model.fit(x, y)
tensorflow.python.framework.errors_impl.ResourceExhaustedError: failed to allocate memory [Op:AddV2]
"""


def in_a_child(script, **environment):
    """Run a script in a process of its own to its end, or to its failure."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1"} | environment,
    )


def explained_in_a_child(script, run=in_a_child, **environment):
    """Run a script that prints its report as JSON last, and return the one finding."""
    done = run(script, **environment)
    assert done.returncode == 0, done.stderr[-2000:]
    (finding,) = json.loads(done.stdout.splitlines()[-1])["findings"]
    return finding


class TestCard:
    @pytest.mark.parametrize(
        ("text", "symptom"),
        [
            (
                BEFORE_1_5,
                OutOfMemoryCrash(
                    "PyTorch",
                    "GPU 0",
                    tried=50 * MIB,
                    capacity=6 * GIB,
                    card=6 * GIB,
                    free=round(3.5 * GIB),
                    allocated=693 * MIB,
                    reserved=711 * MIB,
                    elsewhere=6 * GIB - round(3.5 * GIB) - 711 * MIB,
                ),
            ),
            (
                BEFORE_2_1,
                OutOfMemoryCrash(
                    "PyTorch",
                    "GPU 1",
                    tried=2 * GIB,
                    capacity=6 * GIB,
                    card=6 * GIB,
                    free=GIB,
                    allocated=781 * MIB,
                    reserved=round(1.5 * GIB),
                    elsewhere=round(3.5 * GIB),
                ),
            ),
            (
                SINCE_2_1,
                OutOfMemoryCrash(
                    "PyTorch",
                    "GPU 0",
                    tried=138 * MIB,
                    capacity=16 * GIB,
                    card=16 * GIB,
                    free=8 * MIB,
                    allocated=GIB,
                    reserved=GIB + 128 * MIB,
                    others=(Holder(1246069, 14 * GIB),),
                    elsewhere=16 * GIB - 8 * MIB - round(1.25 * GIB),
                ),
            ),
            (
                LATEST,
                OutOfMemoryCrash(
                    "PyTorch",
                    "GPU 0",
                    tried=22 * GIB,
                    capacity=round(31.5 * GIB),
                    card=round(31.5 * GIB),
                    free=round(12.5 * GIB),
                    allocated=9 * GIB,
                    reserved=round(17.5 * GIB),
                    others=(),
                    elsewhere=GIB,
                ),
            ),
            (
                SIMULATED,
                OutOfMemoryCrash(
                    "PyTorch",
                    "GPU 0",
                    tried=20 * MIB,
                    capacity=64 * MIB,
                    card=64 * MIB,
                    free=512,
                    allocated=63 * MIB,
                    reserved=63 * MIB,
                    elsewhere=MIB - 512,
                ),
            ),
            ("RuntimeError: CUDA error: out of memory", OutOfMemoryCrash("PyTorch", "GPU")),
            (
                "RuntimeError: MPS backend out of memory (MPS allocated: 8.00 GB, other allocations: 1.00 GB, max "
                "allowed: 9.07 GB). Tried to allocate 256.00 MB on private pool.",
                OutOfMemoryCrash("PyTorch", "GPU", tried=256 * MIB),
            ),
        ],
        ids=["before 1.5", "before 2.1", "since 2.1", "latest", "simulated", "driver", "mac"],
    )
    def test_is_read_from_every_wording(self, text, symptom):
        assert symptom_of_text(text) == symptom

    def test_of_which_the_driver_tells_nonsense_is_not_believed(self):
        text = SINCE_2_1.replace("has 14.00 GiB memory", "has 17179869184.00 GiB memory")
        assert symptom_of_text(text).others == (Holder(1246069, None),)

    @pytest.mark.parametrize(
        "text",
        [
            "RuntimeError: CUDA error: invalid device ordinal",
            "ValueError: we ran out of memory lanes",
            "tensorflow.python.framework.errors_impl.ResourceExhaustedError: received message larger than max",
        ],
    )
    def test_is_not_seen_in_other_errors(self, text):
        assert not [fact for fact in facts_of_text(text)[1:] if isinstance(fact, type(symptom_of_text(SINCE_2_1)))]


class TestHost:
    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to RLIMIT_DATA")
    def test_is_read_from_a_real_failure_of_pytorch(self, torch_forks):
        finding = explained_in_a_child(
            """
            import resource
            import torch
            from torch import nn
            import diagnostics

            model = nn.Sequential(nn.Linear(1000, 1000), nn.ReLU(), nn.Linear(1000, 10))
            optimizer = torch.optim.AdamW(model.parameters())
            status = next(line for line in open("/proc/self/status") if line.startswith("VmData"))
            limit = int(status.split()[1]) * 1024 + 120 * 2**20
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
            try:
                for rows in (1_000, 10_000):
                    loss = model(torch.randn(rows, 1000)).sum()
                    loss.backward()
                    optimizer.step()
            except RuntimeError as error:
                report = diagnostics.explain(error)
            print(report.to_json(indent=None))
            """,
            lambda script: torch_forks.run(textwrap.dedent(script)),
        )
        assert finding["rule"] == "out-of-memory"
        evidence = finding["evidence"]
        parameters = 1000 * 1000 + 1000 + 10 * 1000 + 10
        assert evidence["tried_bytes"] in (10_000 * 1000 * 4, 10_000 * 10 * 4)
        assert evidence["weights_bytes"] == evidence["gradients_bytes"] == 4 * parameters
        assert evidence["optimizer_state_bytes"] == 8 * parameters
        assert (evidence["framework"], evidence["device"]) == ("PyTorch", "CPU")
        assert evidence["free_bytes"] < 120 * MIB < evidence["capacity_bytes"]

    @pytest.mark.slow
    @pytest.mark.exhaustive
    def test_is_read_from_a_real_failure_of_tensorflow_without_importing_pytorch(self):
        finding = explained_in_a_child(
            """
            import sys
            import keras
            import numpy as np
            import diagnostics

            model = keras.Sequential([keras.Input((1000,)), keras.layers.Dense(2000), keras.layers.Dense(10)])
            model.compile("adam", "mse")
            try:
                model.train_on_batch(np.zeros((40_000, 1000), "float32"), np.zeros((40_000, 10), "float32"))
            except Exception as error:
                report = diagnostics.explain(error)
            assert "torch" not in sys.modules
            print(report.to_json(indent=None))
            """,
            TF_CPU_ALLOCATOR_USE_BFC="1",
            TF_CPU_BFC_MEM_LIMIT_IN_MB="300",
            TF_ENABLE_ONEDNN_OPTS="0",  # oneDNN's kernels do not survive a refusal of this allocator
        )
        assert finding["rule"] == "out-of-memory"
        evidence = finding["evidence"]
        parameters = 1000 * 2000 + 2000 + 2000 * 10 + 10
        assert (evidence["framework"], evidence["device"]) == ("TensorFlow", "CPU")
        assert evidence["capacity_bytes"] == 300 * MIB
        assert evidence["tried_bytes"] == 40_000 * 2000 * 4
        assert evidence["weights_bytes"] == evidence["gradients_bytes"] == 4 * parameters
        assert evidence["optimizer_state_bytes"] == 8 * parameters

    def test_is_read_from_a_real_failure_of_numpy(self):
        import numpy as np

        with pytest.raises(MemoryError) as raised:
            np.empty((2**30, 2**15))
        (finding,) = diagnostics.explain(raised.value).findings
        assert finding.evidence["framework"] == "NumPy"
        assert finding.evidence["tried_bytes"] == 2**48

    @pytest.mark.parametrize(
        ("text", "tried"),
        [
            (
                "RuntimeError: [enforce fail at ..\\c10\\core\\impl\\alloc_cpu.cpp:72] data. DefaultCPUAllocator: "
                "not enough memory: you tried to allocate 2147483648 bytes.",
                2 * GIB,
            ),
            (
                "RuntimeError: [enforce fail at CPUAllocator.cpp:68] . DefaultCPUAllocator: can't allocate "
                "memory: you tried to allocate 1048576 bytes. Error code 12 (Cannot allocate memory)",
                MIB,
            ),
            ("MemoryError", None),
        ],
        ids=["windows", "linux", "python"],
    )
    def test_is_read_from_text(self, text, tried):
        symptom = symptom_of_text(text)
        assert (symptom.device, symptom.tried) == ("CPU", tried)


class TestTensorFlow:
    def test_names_the_tensor_and_its_size(self):
        symptom = symptom_of_text(TF_TENSOR)
        assert (symptom.framework, symptom.device) == ("TensorFlow", "GPU 1")
        assert (symptom.shape, symptom.dtype, symptom.tried) == ((256, 512, 512), "half", 256 * 512 * 512 * 2)

    def test_is_completed_from_the_allocators_own_report(self):
        symptom = symptom_of_text(TF_REPORT)
        assert (symptom.tried, symptom.capacity, symptom.free) == (152 * MIB, 300 * MIB, 28 * MIB)
        assert (symptom.allocated, symptom.reserved) == (272 * MIB, 290 * MIB)

    def test_of_older_versions_reports_bare_bytes(self):
        text = TF_REPORT.replace(
            "Total size in pool: 290.00MiB memory_limit_: 300.00MiB available size: 10.00MiB",
            "total_region_allocated_bytes_: 304087040 memory_limit_: 314572800 available bytes: 10485760",
        )
        assert symptom_of_text(text) == symptom_of_text(TF_REPORT)

    def test_is_read_from_the_last_of_several_reports(self):
        earlier = "".join(TF_REPORT.splitlines(keepends=True)[:3]).replace("272.00", "52.00")
        assert symptom_of_text(earlier + TF_REPORT) == symptom_of_text(TF_REPORT)

    def test_has_no_more_than_its_pool_where_that_was_not_let_grow(self):
        symptom = symptom_of_text(
            TF_REPORT.replace(
                "limit_: 300.00MiB available size: 10.00", "limit_: 790.00MiB available size: 500.00"
            )
        )
        assert (symptom.capacity, symptom.free) == (290 * MIB, 18 * MIB)

    @pytest.mark.slow
    @pytest.mark.exhaustive
    def test_is_read_from_the_whole_output_of_a_real_failure(self):
        script = """
            import tensorflow as tf
            held = [tf.zeros(2**19) + 1.0 for _ in range(140)]  # of 2 MiB each
            del held[::2]
            held.append(tf.zeros(2**24))
            """
        pool = {"TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "300"}
        symptom = symptom_of_text(in_a_child(script, TF_CPP_MIN_LOG_LEVEL="0", **pool).stderr)
        assert (symptom.tried, symptom.capacity, symptom.reserved) == (64 * MIB, 300 * MIB, 300 * MIB)
        assert 64 * MIB < symptom.free == 300 * MIB - symptom.allocated

    def test_is_known_by_the_words_of_xla(self):
        text = (
            "jaxlib.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes."
        )
        assert symptom_of_text(text).tried == 16 * GIB


class TestHolders:
    """A driver's answers are recorded ones here; the process asked about is this one."""

    def explained(self, monkeypatch, holders, index=1, message=BEFORE_2_1):
        card = CardFacts(index, "NVIDIA A10", 24 * GIB, GIB, holders)
        monkeypatch.setattr(nvml, "cards", lambda: (CardFacts(5, "NVIDIA A10", 24 * GIB, 24 * GIB), card))
        try:
            raise RuntimeError(message.partition(": ")[2])
        except RuntimeError as error:
            return facts_of_exception(error)[1]

    def test_are_asked_of_the_driver_where_the_message_names_none(self, monkeypatch):
        hungry = Holder(4711, 20 * GIB, "ada", ("TensorFlow",))
        symptom = self.explained(monkeypatch, (hungry, Holder(os.getpid(), 3 * GIB)))
        assert symptom.others == (hungry,)
        assert (symptom.elsewhere, symptom.card, symptom.capacity) == (20 * GIB, 24 * GIB, 6 * GIB)
        assert symptom.device == "GPU 1 (NVIDIA A10)"

    def test_are_left_open_where_this_process_goes_by_another_number(self, monkeypatch):
        symptom = self.explained(monkeypatch, (Holder(4711, 20 * GIB), Holder(4712, 3 * GIB)))
        assert symptom.others is None

    def test_are_asked_for_tensorflows_gpu_allocator_on_the_host_too(self, monkeypatch):
        hungry = Holder(4711, 20 * GIB, "ada", ("TensorFlow",))
        message = TF_TENSOR.replace(
            "device:GPU:1 by allocator GPU_1_bfc", f"device:CPU:0 by allocator {BFC_ON_CPU}"
        )
        symptom = self.explained(monkeypatch, (hungry, Holder(os.getpid(), GIB)), index=0, message=message)
        assert (symptom.device, symptom.others, symptom.card) == ("GPU 0 (NVIDIA A10)", (hungry,), 24 * GIB)
