"""A script whose bug is not told: one of the exhibits, in other clothes.

The names and the docstring that would give the exhibit away are changed; what the script does is not. No file
names the exhibit: `progress.json` holds a digest, which is compared with those of all exhibits.
"""

from __future__ import annotations

import ast
import hashlib
import io
import random
import re
import tokenize
from collections.abc import Iterable, Mapping, Sequence

from bugs.zoo.keeper.manifest import Exhibit

NAME = "surprise"  # of the attempt's folder, and what a learner calls it
# Names of our scripts, and what others call the same. A name that is also an argument's stays as it is.
VARIANTS: Mapping[str, Sequence[str]] = {
    "model": ("net", "network", "classifier"),
    "tokenized": ("encoded_rows", "dataset"),
    "raw": ("pairs", "examples_in"),
    "train_loader": ("loader", "train_batches"),
    "validation": ("held_out", "dev"),
    "metrics": ("results", "scores"),
    "optimizer": ("opt", "optim_"),
    "total": ("running", "summed"),
    "preprocess": ("prepare", "to_tokens"),
    "correct": ("hits", "right"),
}
DOCSTRING = "Train a small network.\n\n$ python attempts/surprise/train.py\n"


def digest(exhibit: Exhibit, salt: str) -> str:
    """Return what `progress.json` remembers of an exhibit that was dealt: "salt:hash"."""
    return f"{salt}:{hashlib.sha256(f'{salt} {exhibit.folder}'.encode()).hexdigest()}"


def dealt_cage(exhibits: Iterable[Exhibit], remembered: str) -> Exhibit | None:
    """Return the exhibit that was dealt; None if none was, or it is no longer there."""
    salt = remembered.partition(":")[0]
    return next((exhibit for exhibit in exhibits if digest(exhibit, salt) == remembered), None)


def deal(exhibits: Sequence[Exhibit], solved: Iterable[str], chance: random.Random) -> Exhibit:
    """Choose an exhibit at random, of those not yet solved as long as there are any.

    Raises:
        ValueError: there are no exhibits.
    """
    if not exhibits:
        raise ValueError("there are no exhibits to choose a surprise from")
    known = set(solved)
    return chance.choice([each for each in exhibits if each.id not in known] or list(exhibits))


def disguised(exhibit: Exhibit, chance: random.Random) -> str:
    """Return the broken script under another docstring and with other names for its variables."""
    text = exhibit.script.read_text("utf-8")
    tree = ast.parse(text, f"bugs/{exhibit.folder}/train.py")  # which a learner may have edited
    first = tree.body[0]
    if ast.get_docstring(tree) is not None:
        lines = text.splitlines(keepends=True)
        text = f'"""{DOCSTRING}"""\n' + "".join(lines[first.end_lineno :])
    for name, others in VARIANTS.items():
        other = chance.choice(others)
        if _can_be_renamed(text, name) and not re.search(rf"\b{other}\b", text):
            text = _renamed(text, name, other)
    return text


def _can_be_renamed(text: str, name: str) -> bool:
    """Whether a name is a variable or function of the script's top level, and neither attribute nor argument."""
    tree = ast.parse(text)
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    taken = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg | ast.keyword)}
    # Within an f-string's text, Python 3.11 has no tokens to rename.
    quoted = any(
        isinstance(part, ast.Name) and part.id == name
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
    )
    return name in bound and not quoted and name not in taken


def _renamed(text: str, name: str, other: str) -> str:
    tokens, before = [], ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        word = token.string
        if token.type == tokenize.NAME and word == name and before != ".":
            tokens.append((token.start, token.end))
        before = word
    lines = text.splitlines(keepends=True)
    for (row, start), (_, end) in reversed(tokens):
        line = lines[row - 1]
        lines[row - 1] = line[:start] + other + line[end:]
    return "".join(lines)
