"""`diagnose network` with real processes over gloo: ranks that can talk, and each way in which they cannot."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
import torch.distributed
from torch.distributed.run import get_args_parser

from diagnostics.api.network import look_at_network
from diagnostics.facts.ranks.network import STEPS
from tests.support.ports import free_port

AMPLE = "60"  # seconds that no step takes: two processes import PyTorch at their own pace
MOST_S = 100
# Stand-ins for what one host cannot show: another version of PyTorch, and a rank that dies in the middle.
ANOTHER_VERSION = "torch.__version__ = '2.1.0'"
DIES = "torch.distributed.all_reduce = lambda *_: os.kill(os.getpid(), 9)"


class Ranks:
    """Processes of `diagnose network`, each a rank by its environment; all have ended after the test."""

    def __init__(self, folder):
        self.folder, self.started = folder, []
        self.temporary = folder / "temporary"
        self.temporary.mkdir()

    def start(self, *options, stand_in="", **environment):
        path = self.folder / f"path{len(self.started)}"
        path.mkdir()
        text = (
            f"import os, sys\nif '-c' in sys.orig_argv:\n    import torch.distributed\n    {stand_in or 'pass'}\n"
        )
        if stand_in:
            (path / "sitecustomize.py").write_text(text)
        python_path = os.pathsep.join([str(path), os.environ.get("PYTHONPATH", "")])
        process = subprocess.Popen(
            [sys.executable, "-m", "diagnostics", "network", "--format", "json", "--backend", "gloo", *options],
            env={**os.environ, "TMPDIR": str(self.temporary), "PYTHONPATH": python_path, **environment},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        self.started.append(process)
        return process

    def rank(self, number, port, *options, world=2, host="127.0.0.1", **more):
        place = {"RANK": str(number), "WORLD_SIZE": str(world), "MASTER_ADDR": host, "MASTER_PORT": str(port)}
        return self.start(*options, **place, **more)

    def close(self):
        for process in self.started:
            for child in children_of(process):
                child.kill()
            process.kill()
            process.communicate()


def children_of(process):
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


@pytest.fixture
def ranks(tmp_path):
    started = Ranks(tmp_path)
    yield started
    started.close()


@pytest.fixture
def port():
    return free_port()


def ended(process):
    out, err = process.communicate(timeout=MOST_S)
    return process.returncode, json.loads(out) if out else None, err


def only_finding(report):
    (finding,) = report["findings"]
    return finding


def status_of(report):
    return {stage["name"]: stage["status"] for stage in report["stages"]}


@pytest.mark.slow
class TestRanksThatCanTalk:
    def test_all_steps_pass_and_nothing_is_left(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)
        before = psutil.Process().children(recursive=True)  # other tests may keep a process to fork from
        facts, report = look_at_network(processes=2, backend="gloo", limit=float(AMPLE), environment={})
        assert report.ok, report
        assert report.findings == ()
        assert [rank.passed for rank in facts.ranks] == [STEPS] * 2
        assert {rank.versions["torch"] for rank in facts.ranks} == {str(torch.__version__)}
        assert facts.bandwidth.seconds > 0
        details = {stage.name: stage.detail for stage in report.stages}
        assert "all-reduce of 32.0 MiB in" in details["bandwidth"]
        assert details["connections"] == "TCP, 1 pair both ways"
        assert set(psutil.Process().children(recursive=True)) <= set(before)
        assert list(tmp_path.iterdir()) == []
        shared = os.listdir("/dev/shm") if Path("/dev/shm").exists() else []
        assert not [name for name in shared for rank in facts.ranks if str(rank.pid) in name.split("_")]

    def test_versions_that_differ_are_told(self, ranks, port):
        rank_0 = ranks.rank(0, port, "--limit", AMPLE)
        rank_1 = ranks.rank(1, port, "--limit", AMPLE, stand_in=ANOTHER_VERSION)
        code, report, err = ended(rank_0)
        assert code == 1, err
        finding = only_finding(report)
        assert finding["rule"] == "mixed-versions"
        assert f"torch is {torch.__version__} on rank 0 but 2.1.0 on rank 1" in finding["message"]
        assert set(status_of(report).values()) == {"passed"}
        assert ended(rank_1)[:2] == (0, None)  # rank 0 reports for both

    @pytest.mark.exhaustive
    def test_under_torchrun(self, tmp_path):
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
             "-m", "diagnostics", "network", "--backend", "gloo", "--limit", AMPLE],
            env={**os.environ, "TMPDIR": str(tmp_path), "COLUMNS": "100"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MOST_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("tried the network between 2 ranks of torchrun over gloo") == 1
        assert "Nothing found." in done.stdout


@pytest.mark.slow
class TestRanksThatCannotTalk:
    def test_a_rank_that_never_starts(self, ranks, port):
        code, report, err = ended(ranks.rank(0, port, "--limit", "1"))
        assert code == 1, err
        finding = only_finding(report)
        assert finding["rule"] == "unreachable-rank"
        assert finding["message"] == f"1 of 2 ranks did not connect to 127.0.0.1:{port} within 1 s: rank 1." + (
            " 127.0.0.1 means the local host: only ranks on the same host can connect."
        )
        assert status_of(report)["roll call"] == "failed"

    def test_a_port_at_which_nobody_listens(self, ranks, port):
        code, report, err = ended(ranks.rank(1, port, "--limit", "1"))
        assert code == 1, err
        assert (
            f"tried to connect to 127.0.0.1:{port} for 1 s, and the connection was refused"
            in only_finding(report)["message"]
        )

    @pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a full queue refuses")
    def test_a_port_that_is_blocked(self, ranks):
        # A server whose queue is full answers no more, like a firewall that drops packets.
        with socket.create_server(("127.0.0.1", 0), backlog=0) as server, contextlib.ExitStack() as waiting:
            port = server.getsockname()[1]
            for _ in range(4):
                client = waiting.enter_context(socket.socket())
                client.setblocking(False)
                client.connect_ex(("127.0.0.1", port))
            code, report, err = ended(ranks.rank(1, port, "--limit", "2"))
        assert code == 1, err
        assert f"got no answer from 127.0.0.1:{port} within 2 s. " in only_finding(report)["message"]
        assert "Either a firewall drops the packets" in only_finding(report)["message"]

    def test_a_wrong_master_address(self, ranks, port):
        # 192.0.2.0/24 is reserved for documentation: no host has such an address.
        hosts = ("no.such.host.invalid", "192.0.2.1")
        rank_1, rank_0 = (ranks.rank(1 - n, port, "--limit", "1", host=host) for n, host in enumerate(hosts))
        code, report, err = ended(rank_1)
        assert code == 1, err
        assert "cannot find the host no.such.host.invalid named by MASTER_ADDR" in only_finding(report)["message"]
        code, report, err = ended(rank_0)
        assert code == 1, err
        said = "is configured to listen on 192.0.2.1, which is not an address of its host"
        assert said in only_finding(report)["message"]

    def test_a_port_that_another_program_has(self, ranks):
        with socket.create_server(("", 0)) as other:
            port = other.getsockname()[1]
            rank_0, rank_1 = (ranks.rank(number, port, "--limit", "2") for number in (0, 1))
            (_, of_0, _), (_, of_1, _) = ended(rank_0), ended(rank_1)
        message = only_finding(of_0)["message"]
        assert f"cannot listen on port {port}: another program on its host is already using it" in message
        assert "the program listening there is not rank 0 of this job" in only_finding(of_1)["message"]

    def test_two_ranks_of_one_number(self, ranks):
        store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        store.set_timeout(timedelta(seconds=5))
        agent = {"TORCHELASTIC_USE_AGENT_STORE": "True"}
        both = [ranks.rank(1, store.port, "--limit", "20", **agent) for _ in range(2)]
        until = time.monotonic() + MOST_S
        while all(process.poll() is None for process in both) and time.monotonic() < until:
            time.sleep(0.1)
        (second,) = (process for process in both if process.poll() is not None)
        code, report, err = ended(second)
        assert code == 1, err
        assert "found its rank number taken: " in only_finding(report)["message"]
        assert "is also rank 1." in only_finding(report)["message"]

    def test_a_rank_that_dies_in_the_middle(self, ranks, port):
        rank_0 = ranks.rank(0, port, "--limit", "20")
        ranks.rank(1, port, "--limit", "20", stand_in=DIES)
        code, report, err = ended(rank_0)
        assert code == 1, err
        finding = only_finding(report)
        assert finding["evidence"]["ranks"] == [1]
        assert "ended during the all-reduce." in finding["message"]
        assert status_of(report)["all-reduce"] == "failed"


@pytest.mark.slow
class TestNothingIsLeft:
    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM], ids=lambda s: s.name)
    def test_after_a_signal(self, ranks, how):
        process = ranks.start("--nproc", "2")
        until = time.monotonic() + 20
        while len(children := children_of(process)) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        assert len(children) == 2
        time.sleep(0.5)  # they import PyTorch now
        process.send_signal(how)
        _, alive = psutil.wait_procs(children, timeout=20)
        assert alive == []
        process.communicate(timeout=20)
        assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}.get(how, -how)
        assert list(ranks.temporary.iterdir()) == []


@pytest.mark.parametrize("command", ["network", "run"])
def test_torchrun_leaves_our_options_to_us(command):
    help_of = [sys.executable, "-m", "diagnostics", command, "--help"]
    shown = subprocess.run(help_of, capture_output=True, text=True, check=True)
    options = set(re.findall(r"^  (--[a-z-]+)", shown.stdout, re.M)) - {"--nproc"}  # that is for want of torchrun
    assert len(options) > 3
    for option in options:  # its parser takes what begins two of its own options for ambiguous, wherever it stands
        given = get_args_parser().parse_args(["-m", "diagnostics", command, option])
        assert given.training_script_args == [command, option]
