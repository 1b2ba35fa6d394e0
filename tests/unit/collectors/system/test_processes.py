"""Real processes: when they were started, beside the dates of files, and which of them are ranks."""

import os
import subprocess
import sys
import time

import pytest

from diagnostics.collectors.system.processes import process_start, running_ranks


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it")
def test_a_start_lies_between_the_moments_before_and_after():
    before = time.time()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        after = time.time()
        began = process_start(child.pid)
        child.communicate(b"\n")
    assert before - 0.05 <= began <= after + 0.05  # ticks of 10 ms


def test_a_start_is_not_known_of_a_process_that_is_gone():
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    assert process_start(child.pid) is None
    assert process_start(os.getpid()) is None or process_start(os.getpid()) < time.time()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it")
def test_ranks_are_running_until_they_are_killed():
    wait = [sys.executable, "-c", "input()"]
    ranks = [
        subprocess.Popen(wait, stdin=subprocess.PIPE, env={**os.environ, "RANK": str(number)}) for number in (6, 7)
    ]
    try:
        until = time.monotonic() + 20
        while running_ranks(os.getpid()) != {6, 7} and time.monotonic() < until:  # between fork and exec
            time.sleep(0.01)
        assert running_ranks(os.getpid()) == {6, 7}
        ranks[0].kill()
        os.waitid(os.P_PID, ranks[0].pid, os.WEXITED | os.WNOWAIT)  # a zombie now
        assert running_ranks(os.getpid()) == {7}
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
    assert running_ranks(os.getpid()) == set()
