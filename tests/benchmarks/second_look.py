"""What the second look of `diagnose run` takes, against its budget, for programs of three sizes, and for Keras.

A run that did not learn, where nothing explains it, has a larger budget: then experiments train copies.

$ python tests/benchmarks/second_look.py
$ python tests/benchmarks/second_look.py 0.1 Keras      # those with one of these words in their name
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from diagnostics.run.second_look import budget

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENT = "experiment"  # in the stage's detail: those were run, or could not be. Only then the budget is larger
PROGRAM = """
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(1000, WIDTH)
            layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, LAYERS)
            self.head = nn.Linear(WIDTH, 4)

        def forward(self, tokens, mask):
            hidden = self.encoder(self.words(tokens), src_key_padding_mask=mask)
            return self.head(hidden.mean(1))

    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(STEPS):
        labels = torch.randint(4, (32,))
        tokens = torch.randint(250, (32, 32)) + (250 * labels[:, None] if LEARNS else 0)
        mask = torch.arange(32) >= torch.randint(8, 33, (32, 1))
        loss = nn.functional.cross_entropy(model(tokens, mask), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """
KERAS = """
    import numpy as np
    import keras
    from keras import layers

    keras.utils.set_random_seed(0)
    tokens, mask = keras.Input((32,), dtype="int32"), keras.Input((32,), dtype="bool")
    hidden = layers.Embedding(1000, WIDTH)(tokens)
    for _ in range(LAYERS):
        hidden = hidden + layers.MultiHeadAttention(4, WIDTH // 4)(hidden, hidden, key_mask=mask)
        hidden = hidden + layers.Dense(WIDTH)(layers.Dense(4 * WIDTH, "relu")(hidden))
    model = keras.Model([tokens, mask], layers.Dense(4)(layers.GlobalAveragePooling1D()(hidden)))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    y = np.random.randint(4, size=32 * STEPS)
    x = np.random.randint(250, size=(32 * STEPS, 32)) + (250 * y[:, None] if LEARNS else 0)
    seen = np.arange(32) < np.random.randint(8, 33, size=(len(x), 1))
    model.fit([x, seen], y, verbose=0)
    """
SIZES = {
    "0.1 million parameters": (PROGRAM, {"WIDTH": 64, "LAYERS": 1, "STEPS": 120, "LEARNS": True}),
    "0.1 million parameters, labels at random": (
        PROGRAM,
        {"WIDTH": 64, "LAYERS": 1, "STEPS": 120, "LEARNS": False},
    ),
    "3 million parameters": (PROGRAM, {"WIDTH": 256, "LAYERS": 4, "STEPS": 20, "LEARNS": True}),
    "39 million parameters": (PROGRAM, {"WIDTH": 768, "LAYERS": 6, "STEPS": 6, "LEARNS": True}),
    "3 million parameters in Keras": (KERAS, {"WIDTH": 256, "LAYERS": 4, "STEPS": 20, "LEARNS": True}),
}


def measured(program, settings):
    """Return the seconds of the run, those of its second look, and the look's outcome in words.

    Those of the look are None if it was stopped: then it has used up its budget.
    """
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"{name} = {value}" for name, value in settings.items()]
        Path(folder, "train.py").write_text("\n".join([*lines, textwrap.dedent(program)]))
        command = [
            sys.executable,
            "-m",
            "diagnostics",
            "run",
            "--fail-on",
            "never",
            "--output",
            "r.json",
            "--quiet",
            "train.py",
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if ended.returncode:
            sys.exit(f"diagnose run ended with {ended.returncode}:\n{ended.stderr}")
        report = json.loads(Path(folder, "r.json").read_text())
    stage = next(stage for stage in report["stages"] if stage["name"] == "second look")
    ran = float(re.search(r"([\d.]+) s$", report["title"])[1])
    looked = re.search(r"in ([\d.]+) s", stage["detail"]) if stage["status"] == "passed" else None
    return ran, looked and float(looked[1]), stage["detail"]


def main(words):
    kept, words = True, [word.lower() for word in words] or [""]
    for name, (program, settings) in SIZES.items():
        if not any(word in name.lower() for word in words):
            continue
        ran, looked, detail = measured(program, settings)
        if looked is None:
            print(f"{name}: no second look after a run of {ran:.1f} s, {detail}", flush=True)
            kept = False
            continue
        unlearned = EXPERIMENT in detail
        if unlearned == settings["LEARNS"]:
            sys.exit(f"{name}: this run did {'not ' if settings['LEARNS'] else ''}learn, which it was made for")
        allowed = budget(None, ran, unlearned)
        kept = kept and looked <= allowed
        case = "did not learn" if unlearned else "learned, or too short to tell"
        took = f"{looked:.1f} s (at most {allowed:.1f} s), after a run of {ran:.1f} s"
        print(f"{name}, {case}: {took}", flush=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
