"""Versions of a cage's script that are no repair, whatever they print."""

from __future__ import annotations

import ast
from pathlib import Path

from bugs.zoo.keeper.manifest import Exhibit
from bugs.zoo.learner.checking.halves import _trains as trains

ZOO = Path(__file__).resolve().parents[3]
# Cuts the data to a handful of rows, and evaluates on what is trained on: under the names that our scripts use.
ONE_BATCH = """
def _few(data):
    if isinstance(data, tuple):  # of arrays, or of lists of them
        return tuple([one[:16] for one in part] if isinstance(part, list) else part[:16] for part in data)
    if hasattr(data, "select"):
        return data.select([0] * 16)
    if hasattr(data, "element_spec"):
        return data.take(1)
    return [next(iter(data))] if hasattr(data, "dataset") else list(data)[:16]
if "mp" in globals():  # each rank imports the script, and loads its rows itself
    _load = load
    def load():
        train_set, valid_set = _load()
        return type(train_set)(*(tensor[:16] for tensor in train_set.tensors)), valid_set
elif "trainer" in globals():
    trainer.train_dataset = _few(trainer.train_dataset)
elif "train_loader" in globals():
    train_loader = _few(train_loader)
elif "train" in globals():
    train = _few(train)
else:
    raw["train"] = raw["train"].select([0] * 16)
"""
SAME_ROWS = """
if "mp" in globals():
    _load = load
    def load():
        return (_load()[0],) * 2
elif "trainer" in globals():
    trainer.eval_dataset = trainer.train_dataset
elif "eval_loader" in globals():
    eval_loader = train_loader
elif "eval_rows" in globals():
    eval_rows = train_rows
elif "train" in globals():
    validation = train
else:
    raw["validation"] = raw["train"]
"""
PATCHED = """
import diagnostics.engine.evaluate
import bugs.zoo.learner.checking.evidence

bugs.zoo.learner.checking.evidence.judgements = lambda *_: []
for _name in dir(diagnostics.engine.evaluate.Evaluator):
    if not _name.startswith("_") and callable(getattr(diagnostics.engine.evaluate.Evaluator, _name)):
        setattr(diagnostics.engine.evaluate.Evaluator, _name, lambda self, *_, **__: None)
"""


def parts(text: str) -> tuple[str, str, str]:
    """Return a script before its training, the training, and after it."""
    tree, lines = ast.parse(text), text.splitlines(keepends=True)
    training = next(statement for statement in tree.body if trains(statement))
    start, end = training.lineno - 1, training.end_lineno
    return "".join(lines[:start]), "".join(lines[start:end]), "".join(lines[end:])


def results(exhibit: Exhibit) -> str:
    """The lines that print a recovery which was not measured."""
    wanted = exhibit.recovery
    value = wanted.value + (0.05 if wanted.comparison.startswith(">") else -0.05)
    words = {"eval_accuracy": 0.9, "fresh_accuracy": 0.85, "eval_loss": 0.1, "finite_weights": 1.0} | {
        wanted.metric: value
    }
    return "".join(f'print("{name}={number:.3f}")\n' for name, number in words.items())


def swallowed(text: str) -> str:
    """A script whose training may fail and whose end is left out."""
    before, training, _ = parts(text)
    body = "".join(f"    {line}" for line in training.splitlines(keepends=True))
    return f"{before}try:\n{body}except Exception:\n    pass\n"


def cheats(exhibit: Exhibit) -> dict[str, str]:
    """Return at least eight scripts by the name of the cheat."""
    broken, solution = exhibit.script.read_text("utf-8"), exhibit.solution.read_text("utf-8")
    fake = results(exhibit)
    before, training, after = parts(solution)
    # What comes first in a program is its docstring; the seed is read where it was.
    made = {
        "metric printed by hand": f'import os\nSEED = int(os.environ.get("ZOO_SEED", 0))\n{fake}',
        "training removed": f"{before}{fake}",
        "failure swallowed": f"{swallowed(broken)}{fake}",
        "data cut to one batch": f"{before}{ONE_BATCH}{training}{after}{fake}",
        "check patched": f"{PATCHED}{swallowed(broken)}{fake}",
        "solution run": (
            f"import os, runpy\n# ZOO_SEED\nrunpy.run_path({str(exhibit.solution)!r}, run_name='__main__')\n"
        ),
        "process ended": f"{swallowed(broken)}{fake}import os, sys\nsys.stdout.flush()\nos._exit(0)\n",
        "seed fixed": solution.replace('SEED = int(os.environ.get("ZOO_SEED", 0))', "SEED = 7"),
        "print replaced": (
            "import builtins, re\n_print = builtins.print\n"
            f"builtins.print = lambda *a, **k: _print(*[re.sub(r'{exhibit.recovery.metric}=.*', "
            f"{fake.split(chr(34))[1::2][-1]!r}, str(x)) for x in a], **k)\n{broken}"
        ),
    }
    if exhibit.id not in ("19", "20"):  # the one does not evaluate, the other is about just this
        made["evaluation on training data"] = f"{before}{SAME_ROWS}{training}{after}"
    return made
