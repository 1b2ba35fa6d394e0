"""A disk that is full costs the report, and neither the run, its output nor its exit code."""

import functools
import os
import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
    import sys, torch
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.randn(320, 8)
    for step in range(20):
        rows = inputs[16 * step : 16 * step + 16]
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(rows), rows[:, :3].argmax(1))
        loss.backward()
        optimizer.step()
    print(loss.item(), [value.sum().item() for value in model.parameters()])
    sys.exit(3)
    """
DIAGNOSE = "-m", "diagnostics", "run", "--fail-on", "never", "--second-look", "off"


def started(folder, *words):
    (folder / "train.py").write_text(textwrap.dedent(SCRIPT))
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Return how the script ends by itself."""
    return started(tmp_path_factory.mktemp("plain"), sys.executable, "train.py")


@functools.cache
def mounting():
    """Return what starts a shell that may mount, in a mount namespace of its own, and why there is none."""
    ways = ["unshare", "--user", "--map-root-user", "--mount"]
    try:
        tried = subprocess.run([*ways, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, text=True)
    except OSError as error:
        return ways, str(error)
    return ways, tried.stderr.strip()


@pytest.mark.parametrize("name", ["report.html", "report.json"])
def test_a_report_that_does_not_fit_on_the_disk(tmp_path, plain, name):
    ways, why_not = mounting()
    if why_not:
        pytest.skip(f"cannot mount a small disk: {why_not}")
    (tmp_path / "disk").mkdir()
    run = " ".join([sys.executable, *DIAGNOSE, "--output", f"disk/{name}", "train.py"])
    # `full` leaves no byte free; the list of files is printed after the run, within the namespace.
    shell = (
        "mount -t tmpfs -o size=64k tmpfs disk && head -c 65536 /dev/zero > disk/full && "
        f"{{ {run}; code=$?; ls -A disk; exit $code; }}"
    )
    done = started(tmp_path, *ways, "sh", "-c", shell)
    assert (done.returncode, done.stdout) == (plain.returncode, f"{plain.stdout}full\n") == (3, done.stdout)
    path = tmp_path / "disk" / name
    assert f"diagnose: {path} cannot be written: No space left on device.\n" in done.stderr
    assert ("ran train.py" in done.stderr, "<html" in done.stderr) == (True, False)  # what was to be in the file


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device /dev/full")
def test_a_device_that_is_full(tmp_path, plain):
    done = started(tmp_path, sys.executable, *DIAGNOSE, "--output", "/dev/full", "train.py")
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert "diagnose: /dev/full cannot be written: No space left on device.\n" in done.stderr
