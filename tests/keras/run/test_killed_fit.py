"""What is left of a report when a process is killed within `fit`."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("keras")

FIT = """
    import os, signal
    import keras, numpy as np
    keras.utils.set_random_seed(0)
    x = np.random.normal(size=(256, 8)).astype("float32")
    y = x[:, :3].argmax(1)
    layers = [keras.layers.Dense(16, "relu"), keras.layers.Dense(3)]
    model = keras.Sequential([keras.Input((8,)), *layers])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    kill = lambda epoch, logs: epoch == 2 and os.kill(os.getpid(), signal.SIGKILL)
    model.fit(x, y, epochs=5, verbose=0, callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=kill)])
    """


def test_report_of_a_killed_fit_survives(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent(FIT))
    for_each_step = (
        "import sys; import diagnostics.api.pace as each; each.EVERY_S, each.SHARE = 0, 1e9; "
        "from diagnostics.cli.main import main; sys.exit(main())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", for_each_step, "run", "--output", "report.json", "train.py"],
        cwd=tmp_path, env={**os.environ, "KERAS_BACKEND": "tensorflow"}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["exit_code"], report["faults"]) == (None, [])
    assert report["title"].startswith("running train.py")
    (end,) = [stage["detail"] for stage in report["stages"] if stage["name"] == "end of the run"]
    assert end.startswith("not seen: this was known after 24 optimizer steps.")
    passed = {stage["name"] for stage in report["stages"] if stage["status"] == "passed"}
    assert passed >= {"dataset", "batch", "loss", "updates"}
