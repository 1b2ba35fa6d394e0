"""Says what a KeyError proves, from its key and the line that asked for it."""

from __future__ import annotations

import re

from diagnostics.facts.crash import CrashFacts

from ..unknown_errors import entries, search
from .lines import expression_before, outermost

_ROWS = re.compile(r"batch|sample|example|row|item|result|input|data|feature|annot|target|info|record|entry|df\b")
_CHECKPOINTS = re.compile(r"ckpt|checkpoint|state|weights|pretrain|snapshot|saved|resume|params")
_PARTS = (
    "optimizer",
    "model",
    "state_dict",
    "epoch",
    "scheduler",
    "lr_scheduler",
    "net",
    "ema",
    "best_acc",
    "args",
)
_CHARACTERS = re.compile(r"dict|char|alphabet|vocab|2id|2idx|_to_|stoi|symbol|phone|token|letter|codec")
_SETTINGS = re.compile(
    r"(?:^|[._])(?:cfg|conf|configs?|options?|opts?|settings|hparams|hyp|hyperparam\w*|params_config|model_params"
    r"|train_params|yaml\w*|parser)$|_(?:config|cfg|options|settings)\b"
)
_CLASSES = re.compile(r"class|label|cat(?:s|eg|id|_)|(?:2|_to_?)(?:id|ix|idx|ind)|vocab|name|tag")
_MARK = re.compile(r"\ufeff|\\ufeff|\xef\xbb\xbf|\\xef\\xbb\\xbf")
_PATH = re.compile(
    r"[\\/](?!u[0-9a-f]{4}|x[0-9a-f]{2}|[ntr](?!\w))|\.(?:jpe?g|png|bmp|tiff?|npy|npz|txt|json|xml|wav|flac|mp[34]|csv|pth?|h5)$",
    re.I,
)
# A KeyError that the registries of mmcv and mmengine raise again, with the name of the class that met it.
_REGISTRIES = re.compile(r"^(?P<quote>['\"])(?:(?P<name>[A-Z]\w{1,80}): [\"']?){1,4}(?P<key>[\w.-]{1,80})")
_KEY = re.compile(
    r"""^(?:(?P<quote>['"])(?P<text>.{0,200})(?P=quote)|(?P<number>-?\d{1,20}))(?:$|[.,;)] |["”`])"""
    r"""|^['"](?P<open>[^'"]{1,40})$"""  # a page lost the other quote
)


def _field_of_format(crash: CrashFacts, text: str, line: str) -> str | None:
    around = " ".join((line, *(f"{frame.file} {frame.code or ''}" for frame in crash.frames[-4:])))[:2_000]
    for row in entries("formats"):
        if text in row["keys"].split("|") and search(row, around):
            return str(row["said"].format(key=repr(text)))
    return None


def key_of(crash: CrashFacts, message: str, line: str) -> str | None:
    """Say what usually leaves out an entry of that name; None if neither the key nor the line tells."""
    if within := _REGISTRIES.match(message.replace("\\", "")):
        return (
            f"{within['name']} looks for {within['key']!r} while it is made, and does not find it: its annotation "
            "file, or its part of the configuration, names the field otherwise or lacks it. Print both's keys."
        )
    found = _KEY.match(message)
    if found is None:
        return None
    text, message = found["text"] or found["open"], found[0].rstrip(".,;) ")
    if found["open"] is not None:
        message = repr(text)
    holder = expression_before(line, rf"\[\s*(?P<mark>['\"]){re.escape(text)}(?P=mark)\s*\]") if text else None
    holder = holder or outermost(line) or expression_before(line, r"\[(?!['\"])")
    table, key = holder or "the table", message
    if any(re.search(r"pandas[\\/]", frame.file) for frame in crash.frames):
        return (
            f"The DataFrame has no column or row {key}: print(df.columns). A blank or another capital in the "
            "name, another separator (sep=), a file without a header, or an index that was not reset are usual."
        )
    if holder == "os.environ":
        return f"The environment variable {text} is not set: launchers such as torchrun set those of the ranks."
    if text is None:
        return (
            f"A label, id or index {key} is met that {table} was not made for: print its keys, and look whether "
            "the data counts from 1, or has a class more than the configuration."
        )
    if _MARK.search(text):
        return (
            "The key begins with a byte order mark, which an editor on Windows writes before a file's text: read "
            'it with open(path, encoding="utf-8-sig").'
        )
    if _PATH.search(text):
        return (
            f"The key is the name of a file: {table} was made from names that are written otherwise (folder, "
            "extension, slashes), or lacks that file. Print a few of its keys beside it."
        )
    if (of_format := _field_of_format(crash, text, line)) is not None:
        return of_format
    if holder and _SETTINGS.search(holder):
        return (
            f"{_sentence(table)} has no {key}: print its keys. If it is read from a file: that is of another "
            f"revision "
            "than the code, another file than the one that is meant, or has the key one level deeper. git pull, "
            "git submodule update, and compare with a file that the project brings."
        )
    if len(text) == 1 and holder and _CHARACTERS.search(holder.lower()):
        return (
            f"{_sentence(table)} has no character {key}: it stands in the data, and the alphabet that the "
            f"table was made "
            "from lacks it. Add it there (blanks, full-width signs and capitals too), or leave such texts out: "
            "set(''.join(texts)) - set(alphabet) lists them all."
        )
    if "state_dict" in text or (holder and _CHECKPOINTS.search(holder.lower())):
        return (
            f"{_sentence(table)} has no part {key}: the file was saved under other names, or holds the weights "
            "alone. Print its keys."
        )
    if holder and _CLASSES.search(holder.lower()):
        return (
            f"{_sentence(table)} has no {key}: the name stands in the data, and the list that {table} was made "
            "from lacks it. Add it there, or leave such rows out."
        )
    if holder and _ROWS.search(holder.lower()):
        return (
            f"{_sentence(table)} has no {key}: print its keys. What made it names the field otherwise, or an "
            "earlier step (a transform, a collator, remove_unused_columns) dropped it."
        )
    if holder is None and text in _PARTS:
        return (
            f"If that is asked of a checkpoint: the file has no part {key}, since the weights were published or "
            "saved without it. Print its keys, and leave out the line that reads it."
        )
    if holder is None and not crash.frames:
        return (
            "Of a table of pandas: print(df.columns); of a batch, an example or a configuration: print its keys. "
            f"{key} is written otherwise there, or an earlier step dropped it."
        )
    return f"{_sentence(table)} has no {key}: print its keys." if holder else None


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] if text.startswith("the ") else text
