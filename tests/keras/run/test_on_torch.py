"""`fit` on Keras' PyTorch backend under `Run`: the same bits, silent where all is well, typical bugs named."""

import functools
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]


def ran(arguments, backend):
    environment = {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    ended = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@functools.cache
def results():
    pytest.importorskip("keras")
    return ran(["-m", "tests.keras.run.on_torch"], "torch")


class TestOnTorch:
    @pytest.mark.parametrize(
        ("case", "rules"),
        [
            ("healthy", []),
            ("generator", []),
            ("labels", ["labels-out-of-range"]),
            ("nan", ["non-finite-inputs"]),
            ("rate", ["exploding-gradients", "learning-rate-too-high", "non-finite-loss"]),
            ("softmax", ["probabilities-as-logits"]),
        ],
    )
    def test_same_bits_and_the_bug_named(self, case, rules):
        told = results()["cases"][case]
        assert told["different"] == []
        assert told["faults"] == []
        assert told["rules"] == rules, told["messages"]

    def test_tells_what_is_not_covered(self):
        stages = results()["cases"]["healthy"]["stages"]
        assert stages["one-batch overfit"][0] == "not judged"
        assert stages["weights"] == ["not judged", "no step is replayed on Keras' PyTorch backend"]
        assert stages["gradients"][0] == "passed"

    def test_names_the_row_that_held_nan(self):
        (message,) = results()["cases"]["nan"]["messages"]
        assert message.startswith("The batch at step ")
        assert "1 of the 32 examples (" in message

    def test_takes_no_module_of_ours_that_imports_tensorflow(self):
        for name in results()["modules"]:
            text = Path(importlib.util.find_spec(name).origin).read_text()
            assert "import tensorflow" not in text, name


ON_JAX = """
import json, warnings
warnings.simplefilter("ignore")
import numpy as np
from diagnostics.run.observer import ScriptObserver
run = ScriptObserver()
import keras
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(np.zeros((32, 4), "float32"), np.zeros(32, int), verbose=0)
run.close()
(training,) = run.trainings
print(json.dumps([run.faults, [(s.name, s.status, s.detail) for s in training.examined.stages]]))
"""


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs JAX")
def test_a_fit_on_jax_is_said_not_to_be_covered():
    faults, ((name, status, detail),) = ran(["-c", ON_JAX], "jax")
    assert faults == []
    assert (name, status) == ("examination", "not judged")
    assert detail.startswith("Keras runs on JAX here: neither the data nor the loss")
