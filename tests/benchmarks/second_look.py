"""What the second look of `diagnose run` takes, against its budget, for programs of three sizes, and for Keras.

$ python tests/benchmarks/second_look.py
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEAST_S, SHARE = 1.0, 0.1
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
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for step in range(STEPS):
        tokens = torch.randint(1000, (32, 32))
        mask = torch.arange(32) >= torch.randint(8, 33, (32, 1))
        loss = nn.functional.cross_entropy(model(tokens, mask), tokens[:, 0] % 4)
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
    x = np.random.randint(1000, size=(32 * STEPS, 32))
    seen = np.arange(32) < np.random.randint(8, 33, size=(len(x), 1))
    model.fit([x, seen], x[:, 0] % 4, verbose=0)
    """
SIZES = {
    "0.1 million parameters": (PROGRAM, {"WIDTH": 64, "LAYERS": 1, "STEPS": 100}),
    "3 million parameters": (PROGRAM, {"WIDTH": 256, "LAYERS": 4, "STEPS": 20}),
    "39 million parameters": (PROGRAM, {"WIDTH": 768, "LAYERS": 6, "STEPS": 6}),
    "3 million parameters in Keras": (KERAS, {"WIDTH": 256, "LAYERS": 4, "STEPS": 20}),
}


def measured(program, settings):
    """Return the seconds of the run and of its second look."""
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
    if stage["status"] != "passed":
        sys.exit(f"no second look: {stage['detail']}")
    return float(re.search(r"([\d.]+) s$", report["title"])[1]), float(
        re.search(r"in ([\d.]+) s", stage["detail"])[1]
    )


def main():
    kept = True
    for name, (program, settings) in SIZES.items():
        ran, looked = measured(program, settings)
        allowed = max(LEAST_S, SHARE * ran)
        kept = kept and looked <= allowed
        print(f"{name}: {looked:.1f} s of {allowed:.1f} s, after a run of {ran:.1f} s", flush=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
