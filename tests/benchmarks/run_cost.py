"""What `diagnose run` costs a whole program, start-up included, against plain `python`.

Wall time is what a user waits; CPU time beside it tells what was computed, which a busy machine changes less.

$ python tests/benchmarks/run_cost.py
$ python tests/benchmarks/run_cost.py Trainer Keras     # those with one of these words in their name
$ .nox/stacks/bin/python tests/benchmarks/run_cost.py SFT     # where TRL is
"""

import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

BOUND = 1.05
PAIRS = 6
WITHOUT_LOOK = ("SFT with LoRA",)  # a run that hardly learns gets a look of 10 s, which second_look.py measures
ROOT = Path(__file__).resolve().parents[2]
# Each takes about half a minute on two cores.
PROGRAMS = {
    "a CNN in a plain PyTorch loop": """
        import torch
        from torch import nn

        torch.manual_seed(0)
        images, labels = torch.randn(2048, 1, 28, 28), torch.randint(10, (2048,))
        images[torch.arange(2048), 0, labels * 2, :] += 1
        model = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 10),
        )
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), 64, shuffle=True)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for epoch in range(STEPS // 32):
            for batch, target in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(batch), target)
                loss.backward()
                optimizer.step()
        """,
    "DistilBERT under a Trainer": """
        from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments
        from bugs import lab

        raw, tokenizer = lab.corpus(), AutoTokenizer.from_pretrained(lab.checkpoint())
        tokenized = raw.map(lambda rows: tokenizer(rows["premise"], rows["hypothesis"]), batched=True)
        model = AutoModelForSequenceClassification.from_pretrained(lab.checkpoint(), num_labels=3)
        arguments = TrainingArguments(
            tempfile.mkdtemp(), max_steps=STEPS, per_device_train_batch_size=32, learning_rate=5e-4,
            warmup_steps=50, report_to=[], save_strategy="no", disable_tqdm=True,
        )
        Trainer(model, arguments, train_dataset=tokenized["train"], processing_class=tokenizer).train()
        """,
    "a CNN under Keras' fit": """
        import keras
        import numpy as np

        keras.utils.set_random_seed(0)
        labels = np.random.randint(10, size=60000)
        images = np.random.normal(size=(60000, 28, 28, 1)).astype("float32")
        images[np.arange(60000), labels * 2] += 1
        model = keras.Sequential([  # data and model of the size of Keras' own introductory example
            keras.Input((28, 28, 1)),
            keras.layers.Conv2D(32, 3, activation="relu"), keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(64, 3, activation="relu"), keras.layers.MaxPooling2D(),
            keras.layers.Flatten(), keras.layers.Dropout(0.5), keras.layers.Dense(10),
        ])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.Adam(1e-3), loss, metrics=["accuracy"])
        # Few epochs: at the end of each, TensorFlow may wait up to a second for a sleeping thread of its pipeline.
        model.fit(images, labels, batch_size=128, epochs=STEPS // 469, verbose=0)
        """,
    "SFT with LoRA": """
        import torch
        from datasets import Dataset
        from peft import LoraConfig
        from tokenizers import Tokenizer, models, pre_tokenizers
        from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
        from trl import SFTConfig, SFTTrainer

        set_seed(0)
        words = ["<pad>", "<s>", "</s>", *(f"w{number}" for number in range(500))]
        vocabulary = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="w0"))
        vocabulary.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=vocabulary, pad_token="<pad>", eos_token="</s>")
        rows = [
            {"prompt": " ".join(f"w{n}" for n in row), "completion": " ".join(f" w{n}" for n in sorted(row))}
            for row in torch.randint(500, (2000, 24)).tolist()
        ]
        shape = dict(hidden_size=192, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4)
        model = LlamaForCausalLM(LlamaConfig(vocab_size=len(words), **shape))
        arguments = SFTConfig(
            tempfile.mkdtemp(), max_steps=STEPS, per_device_train_batch_size=8, learning_rate=1e-3,
            logging_steps=50, report_to=[], save_strategy="no", disable_tqdm=True, use_cpu=True, bf16=False,
            gradient_checkpointing=False,
        )
        adapter = LoraConfig(task_type="CAUSAL_LM", r=8, target_modules=["q_proj", "v_proj"])
        data = Dataset.from_list(rows)
        SFTTrainer(model, arguments, train_dataset=data, processing_class=tokenizer, peft_config=adapter).train()
        """,
}
LENGTHS = {
    "a CNN in a plain PyTorch loop": 1280,
    "DistilBERT under a Trainer": 1500,
    "a CNN under Keras' fit": 4 * 469,
    "SFT with LoRA": 400,
}
NEEDS = {"SFT with LoRA": "trl"}


def measured(command, folder, **variables):
    """Run a program to its end; return the seconds of the clock and of the processors."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "2", **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what a container may set; nobody compiles at each start
    started, used = time.perf_counter(), cpu_seconds()
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if ended.returncode:
        sys.exit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr}")
    return time.perf_counter() - started, cpu_seconds() - used


def cpu_seconds():
    """Return the CPU time of all children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def pair(folder, observed_first, *options):
    """Return what plain Python and `diagnose run` took, run one after the other."""
    plain = [sys.executable, "train.py"]
    observed = [sys.executable, "-m", "diagnostics", "run", *options, "train.py"]
    if observed_first:
        took = measured(observed, folder)
        return measured(plain, folder), took
    return measured(plain, folder), measured(observed, folder)


def main(words):
    worst = 0.0
    words = [word.lower() for word in words] or [""]
    chosen = {name: text for name, text in PROGRAMS.items() if any(word in name.lower() for word in words)}
    if not chosen:
        sys.exit(f"no program has one of {words} in its name: {', '.join(PROGRAMS)}")
    for name, text in chosen.items():
        if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
            print(f"{name}: left out, because {NEEDS[name]} is not installed here")
            continue
        with tempfile.TemporaryDirectory() as folder:
            script = f"import tempfile\nSTEPS = {LENGTHS[name]}\n{textwrap.dedent(text)}"
            Path(folder, "train.py").write_text(script)
            options = ("--second-look", "off") if name in WITHOUT_LOOK else ()
            pair(folder, False, *options)  # loads the files, and may build the lab's data
            # Each goes first in turn: a machine that grows slower or faster then favours neither.
            pairs = [pair(folder, bool(turn % 2), *options) for turn in range(PAIRS)]
        ratios = sorted(observed[0] / plain[0] for plain, observed in pairs)
        ratio = statistics.median(ratios)
        computed = statistics.median(observed[1] / plain[1] for plain, observed in pairs)
        worst = max(worst, ratio)
        alone = statistics.median(plain[0] for plain, _ in pairs)
        print(
            f"{name}: diagnose run / python = {ratio:.3f} (at most {BOUND}; pairs from {ratios[0]:.3f} to"
            f" {ratios[-1]:.3f}); CPU time {computed:.3f}; {alone:.1f} s alone",
            flush=True,
        )
    return 0 if worst <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
