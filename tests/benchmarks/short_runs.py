"""What `diagnose run` costs short programs, in CPU time: a fixed part, a part for each step, one for each model.

The programs run with one thread, because CPU time otherwise counts threads that wait for each other: with two, the
same program took 4.7 to 6.6 s. They keep the memory that they free, because it depends on chance how often malloc
returns it: 120,000 to 590,000 page faults in the same program.

$ python tests/benchmarks/short_runs.py
$ python tests/benchmarks/short_runs.py Trainer      # those with one of these words in their name
"""

import statistics
import sys
import tempfile
import textwrap
from pathlib import Path

from run_cost import PROGRAMS, measured

PAIRS = 9
SETTINGS = {"OMP_NUM_THREADS": "1", "MALLOC_TRIM_THRESHOLD_": str(2**32), "MALLOC_MMAP_THRESHOLD_": str(2**32)}
TRAINER = """
    import tempfile
    import torch
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    torch.manual_seed(0)
    shape = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    model = BertForSequenceClassification(BertConfig(vocab_size=100, num_labels=2, **shape))
    rows = []
    for ids in torch.randint(5, 100, (512, 16)):
        rows.append({"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": int(ids[0] > 50)})
    arguments = TrainingArguments(
        tempfile.mkdtemp(), max_steps=STEPS, per_device_train_batch_size=16, learning_rate=1e-3, report_to=[],
        save_strategy="no", disable_tqdm=True, use_cpu=True,
    )
    Trainer(model, arguments, train_dataset=rows).train()
    """
MODELS = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    x = torch.randn(128, 8)
    y = (x[:, 0] > 0).long()
    for _ in range(STEPS):
        model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        for _ in range(2):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    """
CNN = PROGRAMS["a CNN in a plain PyTorch loop"]


def pairs(text, steps):
    """Run a program plain and observed, alternating; return the CPU seconds of each, in pairs."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(f"STEPS = {steps}\n{textwrap.dedent(text)}")
        plain, observed = ["train.py"], ["-m", "diagnostics", "run", "train.py"]

        def took(arguments):
            return measured([sys.executable, *arguments], folder, **SETTINGS)[1]

        took(plain), took(observed)  # loads the files
        found = []
        for turn in range(PAIRS):
            first, second = (plain, observed) if turn % 2 else (observed, plain)
            times = took(first), took(second)
            found.append(times if turn % 2 else times[::-1])
        return found


def told(name, values, bound, unit=""):
    """Print a median with the spread of its pairs, and return whether it is within its bound."""
    middle = statistics.median(values)
    print(
        f"{name}: {middle:.3f}{unit} (at most {bound}{unit}; {min(values):.3f} to {max(values):.3f})", flush=True
    )
    return middle <= bound


def of_trainer():
    """Measure a toy Trainer at two lengths: what is the same, and what each step adds."""
    short, long = pairs(TRAINER, 20), pairs(TRAINER, 420)
    fixed = told("a toy Trainer, fixed", [observed - plain for plain, observed in short], 2.0, " s")
    steps = [
        (observed - observed_short) / (plain - plain_short)
        for (plain, observed), (plain_short, observed_short) in zip(long, short, strict=True)
    ]
    return told("a toy Trainer, each step with / without", steps, 1.10) and fixed


def of_cnn():
    """Measure a whole small program of 64 steps."""
    return told("a small CNN, 64 steps, whole program", [seen / plain for plain, seen in pairs(CNN, 64)], 1.10)


def of_models():
    """Measure what each further model of a search costs."""
    few, many = pairs(MODELS, 20), pairs(MODELS, 420)
    added = [
        ((observed - plain) - (observed_few - plain_few)) / 400 * 1000
        for (plain, observed), (plain_few, observed_few) in zip(many, few, strict=True)
    ]
    return told("each of 400 further models of two steps", added, 2.0, " ms")


MEASURED = {"Trainer": of_trainer, "CNN": of_cnn, "models": of_models}


if __name__ == "__main__":
    words = [word.lower() for word in sys.argv[1:]] or [""]
    results = [measure() for name, measure in MEASURED.items() if any(word in name.lower() for word in words)]
    sys.exit(0 if results and all(results) else 1)
