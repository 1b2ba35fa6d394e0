"""What is left of a report when a process ends without a word to Python, and that nothing of the run changes."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

NEVER_ZEROED = """
    import ctypes, multiprocessing, os, resource, signal, sys, threading, time
    import torch
    from torch import nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    inputs = torch.randn(512, 8)
    labels = inputs[:, :3].argmax(1)
    BEFORE
    for step in range(40):
        rows = torch.randint(512, (32,))
        loss = nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
        loss.backward()
        optimizer.step()
    print(loss.item(), torch.rand(3).tolist(), flush=True)
    print("not flushed", end="")
    END
    """
FOR_EACH_STEP = (
    "import sys; import diagnostics.api.pace as pace; pace.EVERY_S, pace.SHARE = 0, 1e9; "
    "from diagnostics.cli.main import main; sys.exit(main())"
)
REPLACED = 24  # times that the report is replaced before the process dies within the next
DIES_REPLACING = f"""
import os, signal
replace, times = os.replace, iter(range({REPLACED}))
def dying(*names):
    if next(times, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(*names)
os.replace = dying
{FOR_EACH_STEP}
"""
ENDS = {
    "os._exit with success": ("os._exit(0)", 0),
    "a segmentation fault": ("ctypes.string_at(0)", -signal.SIGSEGV),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    "a closed terminal": ("os.kill(os.getpid(), signal.SIGHUP)", -signal.SIGHUP),
    "the end": ("", 0),
}


@pytest.fixture
def watched(tmp_path):
    """Run a script under `diagnose run` with a report after each step, and return the process."""

    def run(end, *options, before="", start=FOR_EACH_STEP):
        (tmp_path / "train.py").write_text(script(end, before))
        command = [sys.executable, "-c", start, "run", "--fail-on", "never", *options, "train.py"]
        env = {**os.environ, "PYTHONUNBUFFERED": "", "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            command, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300
        )

    return run


@pytest.fixture
def both(plain, watched):
    """Run a script by itself, and as `watched` does; return both processes."""

    def run(end, *options):
        return plain(script(end)), watched(end, *options)

    return run


def script(end, before=""):
    return textwrap.dedent(NEVER_ZEROED).replace("BEFORE", before).replace("END", end)


@pytest.mark.parametrize(("end", "code"), ENDS.values(), ids=ENDS)
def test_the_report_survives_and_the_run_is_the_same(both, tmp_path, end, code):
    (tmp_path / "report.json").write_text("of an earlier run")
    plain, watched = both(end, "--output", "report.json")
    assert (plain.returncode, watched.returncode, watched.stdout) == (code, code, plain.stdout)
    report = json.loads((tmp_path / "report.json").read_text())
    assert [finding["rule"] for finding in report["findings"]] == ["gradients-not-zeroed"]
    killed = code < 0
    assert report["title"].startswith("running train.py" if killed else "ran train.py")
    assert report["exit_code"] == (None if killed else code)
    ends = [stage["detail"].partition(".")[0] for stage in report["stages"] if stage["name"] == "end of the run"]
    assert ends == ["not seen: this was known after 40 optimizer steps"] * killed
    assert report["faults"] == []
    assert sorted(file.name for file in tmp_path.iterdir()) == ["report.json", "train.py"]


def test_a_process_that_is_killed_while_it_writes_leaves_the_report_before(watched, tmp_path):
    ended = watched("", "--output", "report.json", start=DIES_REPLACING)
    assert ended.returncode == -signal.SIGKILL
    report = json.loads((tmp_path / "report.json").read_text())
    assert [finding["rule"] for finding in report["findings"]] == ["gradients-not-zeroed"]
    end = next(stage["detail"] for stage in report["stages"] if stage["name"] == "end of the run")
    assert end.startswith(f"not seen: this was known after {REPLACED} optimizer steps.")


@pytest.mark.parametrize("options", [(), ("--output", "-", "--format", "json")], ids=["standard error", "output"])
def test_os_exit_prints_the_report_where_it_was_asked_for(both, options):
    plain, watched = both("os._exit(3)", *options)
    assert (plain.returncode, watched.returncode) == (3, 3)
    assert "gradients-not-zeroed" in (watched.stdout if options else watched.stderr)
    assert watched.stdout.startswith(plain.stdout)
    assert "not flushed" not in watched.stdout


def test_children_that_leave_by_os_exit_write_no_report(both):
    child = (
        "context = multiprocessing.get_context('fork'); child = context.Process(target=print, args=('child',)); "
        "child.start(); child.join(); pid = os.fork()\nif not pid: os._exit(5)\n"
        "print(child.exitcode, os.wait()[1])"
    )
    plain, watched = both(child)
    assert (watched.returncode, watched.stdout) == (0, plain.stdout)
    assert watched.stderr.count("gradients-not-zeroed") == 3  # the finding, its page and the answer


def test_a_watchdog_thread_ends_a_run_that_is_stuck(both):
    stuck = "threading.Timer(0.2, os._exit, (7,)).start(); threading.Lock().acquire(); signal.pause()"
    plain, watched = both(stuck)
    assert (plain.returncode, watched.returncode, watched.stdout) == (7, 7, plain.stdout)
    assert "gradients-not-zeroed" in watched.stderr


def test_a_disk_without_room_costs_the_report_alone(watched, tmp_path):
    full = "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    ended = watched("", "--output", "report.json", before=full)
    assert (ended.returncode, ended.stdout.endswith("]\nnot flushed")) == (0, True)
    assert "report.json cannot be written: File too large." in ended.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["train.py"]


def test_no_file_is_written_that_was_not_asked_for(watched, tmp_path):
    watched("os.kill(os.getpid(), signal.SIGKILL)")
    assert [file.name for file in tmp_path.iterdir()] == ["train.py"]
