"""The simulated GPU: its ledger under real processes, the two policies, and TensorFlow's own allocator."""

import json
import os
import subprocess
import sys

import pytest

from bugs.lab.cache import LabError
from bugs.lab.shared_card import (
    CAPACITY,
    CONTEXT,
    MIB,
    CardFull,
    open_card,
    pytorch_reserves,
    tensorflow_reserves,
)
from tests.zoo.lab.processes import said, start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs file locks")


class TestLedger:
    def test_a_new_card_is_free(self, card):
        assert (card.name, card.holders(), card.free()) == ("Simulated 4 GB GPU", (), CAPACITY)

    def test_what_a_process_holds_replaces_what_it_held(self, card):
        card.hold(100 * MIB, "PyTorch")
        card.hold(300 * MIB, "PyTorch")
        (holder,) = card.holders()
        assert (holder.pid, holder.size, holder.framework) == (os.getpid(), 300 * MIB, "PyTorch")
        assert card.free() == CAPACITY - 300 * MIB
        card.give_back()
        assert card.free() == CAPACITY

    def test_another_process_sees_it_and_finds_no_room(self, card):
        card.hold(4000 * MIB, "TensorFlow")
        process = start("from bugs.lab.shared_card import *\nopen_card().hold(100 << 20, 'PyTorch')")
        assert process.communicate(timeout=60)[1].splitlines()[-1] == (
            "bugs.lab.shared_card.CardFull: Simulated 4 GB GPU: out of memory: 100 MiB wanted, 40 MiB of 4040 "
            f"MiB free; process {os.getpid()} (TensorFlow) 4000 MiB holds the rest. (Only the GPU is simulated.)"
        )

    @pytest.mark.parametrize("waited_for", [True, False], ids=["gone", "zombie"])
    def test_a_killed_process_gives_back_what_it_held(self, card, waited_for):
        process = start(
            "from bugs.lab.shared_card import *\nimport time\n"
            "open_card().hold(1 << 30, 'PyTorch'); print('held', flush=True); time.sleep(60)"
        )
        assert process.stdout.readline() == "held\n"
        assert card.free() == CAPACITY - (1 << 30)
        process.kill()
        if waited_for:
            process.communicate()
        else:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert card.free() == CAPACITY
        process.communicate()

    def test_a_process_killed_under_the_lock_locks_nobody_out(self, card):
        process = start(
            "from bugs.lab.shared_card import *\nimport time\n"
            "with open_card()._opened(): print('locked', flush=True); time.sleep(60)"
        )
        assert process.stdout.readline() == "locked\n"
        process.kill()
        process.communicate()
        assert card.free() == CAPACITY

    def test_a_number_given_out_again_is_another_process(self, card):
        card.hold(MIB, "PyTorch")
        (holder,) = card.holders()
        written = {"holders": [{**vars(holder), "started": holder.started - 1000}]}
        with open(card.path, "r+b") as ledger:
            ledger.write(json.dumps(written).encode().ljust(4096))
        assert card.holders() == ()

    def test_a_clock_that_was_set_makes_no_other_process(self, card):
        card.hold(MIB, "PyTorch")
        (holder,) = card.holders()
        written = {"holders": [{**vars(holder), "started": holder.started - 1}]}
        with open(card.path, "r+b") as ledger:
            ledger.write(json.dumps(written).encode().ljust(4096))
        assert [holder.size for holder in card.holders()] == [MIB]

    def test_of_processes_that_want_most_of_it_one_gets_it(self, card):
        program = (
            "from bugs.lab.shared_card import *\nimport sys\n"
            "try: open_card().hold(3000 << 20, 'PyTorch'); print('mine', flush=True)\n"
            "except CardFull: print('full', flush=True)\n"
            "sys.stdin.read()"
        )
        processes = [
            subprocess.Popen([sys.executable, "-c", program], stdin=-1, stdout=-1, text=True) for _ in range(4)
        ]
        answers = sorted(process.stdout.readline().strip() for process in processes)
        for process in processes:
            process.communicate()
        assert answers == ["full", "full", "full", "mine"]

    @pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the ledger is a file with a name")
    def test_nothing_is_left_of_a_card_whose_processes_were_killed(self, tmp_path):
        process = start(
            "from bugs.lab.shared_card import *\nimport time\n"
            "open_card().hold(1, 'PyTorch'); print('held', flush=True); time.sleep(60)",
            TMPDIR=str(tmp_path),
            ZOO_CARD="",
        )
        assert process.stdout.readline() == "held\n"
        process.kill()
        process.communicate()
        assert list(tmp_path.iterdir()) == []

    def test_the_ledger_outlives_the_process_that_made_it(self, monkeypatch):
        monkeypatch.setenv("ZOO_CARD", "")
        first = start(
            "from bugs.lab.shared_card import *\nimport os, sys\n"
            "open_card(); print(os.environ['ZOO_CARD'], flush=True); sys.stdin.read()"
        )
        path = first.stdout.readline().strip()
        second = start(
            "from bugs.lab.shared_card import *\nimport sys\n"
            "card = open_card(); card.hold(5, 'PyTorch'); print('held', flush=True); sys.stdin.readline()\n"
            "card.hold(7, 'PyTorch'); print(card.holders()[0].size)",
            ZOO_CARD=path,
        )
        assert second.stdout.readline() == "held\n"
        first.kill()
        first.communicate()
        assert second.communicate("\n", timeout=60)[0] == "7\n"


class TestBadInput:
    @pytest.mark.parametrize("size", [-1, 1.5, "1", True])
    def test_bytes_are_whole_and_not_negative(self, card, size):
        with pytest.raises(ValueError, match="hold") as raised:
            card.hold(size, "PyTorch")
        assert str(raised.value) == f"hold: expected a whole number of bytes, 0 or more, got {size!r}"

    def test_more_than_the_card_has_is_refused_whoever_else_is_there(self, card):
        with pytest.raises(ValueError, match="hold") as raised:
            card.hold(CAPACITY + 1, "PyTorch")
        assert str(raised.value) == "hold: 4236247041 bytes are more than the 4236247040 of the Simulated 4 GB GPU"

    @pytest.mark.parametrize("limit", [0, -5, True, "100"])
    def test_a_memory_limit_is_a_number_above_0(self, card, limit):
        with pytest.raises(ValueError, match="memory_limit") as raised:
            card.hold_as_tensorflow(memory_limit=limit)
        assert str(raised.value) == f"memory_limit: expected a number of MiB above 0, got {limit!r}"

    def test_a_memory_limit_and_the_context_must_fit_the_card(self, card):
        with pytest.raises(ValueError, match="are more than"):
            card.hold_as_tensorflow(memory_limit=4000)

    def test_growth_and_a_limit_exclude_each_other(self, card):
        with pytest.raises(ValueError, match="exclude each other"):
            card.hold_as_tensorflow(memory_growth=True, memory_limit=100)

    def test_an_unknown_card_is_named(self, monkeypatch):
        monkeypatch.setenv("ZOO_CARD", "/nowhere/card")
        with pytest.raises(LabError) as raised:
            open_card()
        assert str(raised.value) == (
            "ZOO_CARD=/nowhere/card: there is no ledger of a simulated GPU (No such file or directory). Unset "
            "ZOO_CARD, and the first process makes a new one."
        )

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
            ("{}", "KeyError: 'holders'"),
            ('{"holders": [7]}', "TypeError: bugs.lab.shared_card.Holder() argument after ** must be a mapping"),
            (
                '{"holders": [{"pid": "x", "started": 0, "size": 0, "framework": "x"}]}',
                "numbers are missing",
            ),
        ],
    )
    def test_a_broken_ledger_is_named_with_the_way_out(self, monkeypatch, tmp_path, text, problem):
        ledger = tmp_path / "ledger"
        ledger.write_text(text)
        monkeypatch.setenv("ZOO_CARD", str(ledger))
        with pytest.raises(LabError) as raised:
            open_card().free()
        assert str(raised.value).startswith(
            f"The ledger of the simulated GPU, {ledger}, cannot be read ({problem}"
        )
        assert str(raised.value).endswith("Unset ZOO_CARD, and the first process makes a new one.")


class TestTensorflowReserves:
    @pytest.mark.parametrize(
        ("available", "capability", "left"),
        [
            (2047, 6, 225),
            (2048, 6, 500),
            (8000, 3, 500),
            (8000, 7, 1050),
            (24_000, 8, 1536),
            (80_000, 9, 1800),
            (226, 6, 225),
            (225, 6, 0),
            (80, 6, 0),
        ],
    )
    def test_it_leaves_to_libraries_what_tensorflow_leaves(self, available, capability, left):
        assert tensorflow_reserves(available * MIB, capability) == (available - left) * MIB

    def test_the_first_process_leaves_the_second_a_sliver(self, card):
        first = "from bugs.lab.shared_card import *\nimport time\n"
        first += "print(open_card().hold_as_tensorflow(), flush=True); time.sleep(60)"
        process = start(first)
        try:
            assert int(process.stdout.readline()) == CAPACITY - CONTEXT - 500 * MIB
            assert card.hold_as_tensorflow() == 500 * MIB - CONTEXT == 80 * MIB
            assert card.free() == 0
        finally:
            process.kill()
            process.communicate()

    def test_without_room_for_a_context_it_cannot_start(self, card):
        process = start(
            "from bugs.lab.shared_card import *\nimport time\n"
            "open_card().hold(4000 << 20, 'PyTorch'); print('held', flush=True); time.sleep(60)"
        )
        assert process.stdout.readline() == "held\n"
        with pytest.raises(CardFull, match="421 MiB wanted, 40 MiB of 4040 MiB free"):
            card.hold_as_tensorflow()
        process.kill()
        process.communicate()


class TestPytorchReserves:
    @pytest.mark.parametrize(
        ("sizes", "taken"),
        [
            ([], 0),
            ([1], 2 * MIB),
            ([MIB, MIB], 2 * MIB),
            ([MIB, MIB, 512], 4 * MIB),
            ([MIB + 1], 20 * MIB),
            ([8 * MIB, 8 * MIB, 8 * MIB], 40 * MIB),
            ([10 * MIB + 1], 12 * MIB),
            ([100 * MIB, 1], 102 * MIB),
        ],
    )
    def test_tensors_are_packed_into_blocks(self, sizes, taken):
        assert pytorch_reserves(sizes) == taken

    def test_two_processes_fit_side_by_side_where_two_of_tensorflows_do_not(self, card):
        program = "from bugs.lab.shared_card import *\nimport time\n"
        program += "print(open_card().hold_as_pytorch([200 << 20]), flush=True); time.sleep(60)"
        process = start(program)
        assert int(process.stdout.readline()) == CONTEXT + 200 * MIB
        assert card.hold_as_pytorch([200 * MIB]) == CONTEXT + 200 * MIB
        process.kill()
        process.communicate()

    def test_a_negative_size_is_refused(self):
        with pytest.raises(ValueError, match="expected sizes of 0 bytes or more, got -1"):
            pytorch_reserves([-1])


class TestSharedCard:
    @pytest.mark.exhaustive
    def test_the_second_process_fails_in_tensorflows_words_until_the_first_is_closed(self, monkeypatch):
        monkeypatch.setenv("ZOO_CARD", "")
        told = said(
            """
            import gc, json, os, sys, time
            import tensorflow as tf
            from bugs import lab

            # The forgotten notebook takes what it can, uses 100 MiB of it, and deletes them.
            notebook = lab.open_notebook(
                "import tensorflow as tf; from bugs import lab; card = lab.shared_card()\\n"
                "x = tf.ones([100, 1 << 18]); del x\\n"
                "print(card.holders()[0].size >> 20)"
            )
            said = {"parent": os.getpid()}
            card = lab.shared_card()
            said["holders"] = [(h.pid == notebook.pid, h.size >> 20, h.framework) for h in card.holders()]
            import pynvml
            memory = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0))
            processes = pynvml.nvmlDeviceGetComputeRunningProcesses(0)
            said["nvml"] = [pynvml.nvmlDeviceGetName(0), memory.free, [p.usedGpuMemory >> 20 for p in processes]]
            try:
                tf.ones([90, 1 << 18])
            except tf.errors.ResourceExhaustedError as error:
                said["error"] = error.message
            x = tf.ones([50, 1 << 18])
            said["smaller"] = float(tf.reduce_sum(x)) / (1 << 18)
            del x
            gc.collect()
            said["after deleting"] = card.holders()[1].size >> 20
            notebook.close()
            said["after closing"] = card.free() >> 20

            # One that grows takes what it uses, and keeps it.
            growing = lab.open_notebook(
                "import os; os.environ['TF_FORCE_GPU_ALLOW_GROWTH'] = 'true'\\n"
                "import time; import tensorflow as tf; from bugs import lab; card = lab.shared_card()\\n"
                "x = tf.ones([100, 1 << 18]); del x; time.sleep(1)"
            )
            said["grown"] = [h.size >> 20 for h in card.holders()]
            print(json.dumps(said))
            """
        )
        assert told["holders"] == [[True, 3540, "TensorFlow"], [False, 500, "TensorFlow"]]
        assert told["nvml"] == ["Simulated 4 GB GPU", 0, [3540, 500]]
        assert "OOM when allocating tensor with shape[90,262144] and type float" in told["error"]
        assert "by allocator bfc_cpu_allocator_for_gpu" in told["error"]
        assert told["smaller"] == 50
        assert told["after deleting"] == 500
        assert told["after closing"] == 3540
        large, small = told["grown"]
        assert (large, 520 <= small < 700) == (520, True) or (520 <= large < 700, small) == (True, 500)

    @pytest.mark.exhaustive
    def test_too_late_is_said(self, monkeypatch):
        monkeypatch.setenv("ZOO_CARD", "")
        process = start("import tensorflow as tf\nfrom bugs import lab\ntf.zeros(1)\nlab.shared_card()")
        error = process.communicate(timeout=240)[1]
        assert process.returncode == 1
        assert error.splitlines()[-1] == (
            "TensorFlow had made tensors before this process was put on the simulated GPU, and its allocator "
            "cannot be changed any more. Call lab.shared_card() right after the imports."
        )
