"""The start of real processes, beside the dates of files."""

import os
import subprocess
import sys
import time

import pytest

from diagnostics.collectors.system.process_start import process_start


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it")
def test_lies_between_the_moments_before_and_after():
    before = time.time()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        after = time.time()
        began = process_start(child.pid)
        child.communicate(b"\n")
    assert before - 0.05 <= began <= after + 0.05  # ticks of 10 ms


def test_is_not_known_of_a_process_that_is_gone():
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    assert process_start(child.pid) is None
    assert process_start(os.getpid()) is None or process_start(os.getpid()) < time.time()
