"""The natural-language-inference corpus that the exhibits train on.

By default it is generated (`bugs.lab.sentences`) and kept in the lab's cache. With the environment variable
`ZOO_DATASET` set to a name on the Hugging Face hub (`nyu-mll/glue:mnli`, the part behind the colon being the
configuration) or to a local directory, that one is loaded instead.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from bugs.lab.cache import LabError, built

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

VERSION = 3  # raise it when the generated text changes: the cache keeps one directory a version
SIZES = {"train": 9_000, "validation": 1_200}  # pairs; a third of each label
COLUMNS = ["premise", "hypothesis", "label"]
UNLABELLED = {-1, "-1", "-", "", None}  # how the data sets of the hub mark a row without a label
# names under which the data sets of the hub keep labelled rows that are not for training
VALIDATION_NAMES = ("validation", "validation_matched", "dev", "valid", "eval")
NAMING = (
    "ZOO_DATASET takes a name on the Hugging Face hub, with its configuration behind a colon "
    "(nyu-mll/glue:mnli), or a local directory: one written by save_to_disk, or one with files such as "
    "train.csv and validation.csv. Unset it to use the corpus that comes with the zoo."
)


def corpus() -> DatasetDict:
    """The corpus, held in memory, so that `map` writes no file beside it.

    Returns:
        Splits `train` and `validation`; columns `premise` and `hypothesis` (text) and `label`, a `ClassLabel` with
        entailment, neutral and contradiction as 0, 1 and 2. Rows without a label (-1) are left out.

    Raises:
        LabError: `ZOO_DATASET` cannot be loaded or is no such corpus, or the cache cannot be written or read.
    """
    if named := os.environ.get("ZOO_DATASET"):
        return _shaped(_load(named, NAMING), named)
    directory = generated()
    return _shaped(_load(str(directory), f"Delete {directory}, and it is built again."), str(directory))


def generated() -> Path:
    """The directory of the generated corpus, as `save_to_disk` writes it; built if it is not there.

    Raises:
        LabError: the cache cannot be written or read.
    """
    return built(f"corpus-{VERSION}", "the sentence pairs", save_generated)


def save_generated(directory: Path) -> None:
    """Write the generated corpus, the same bytes each time.

    The premises of the two splits differ, and each premise has one hypothesis a label.
    """
    import random

    import datasets
    from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

    from bugs.lab.sentences.pairs import LABELS, pairs

    features = Features(premise=Value("string"), hypothesis=Value("string"), label=ClassLabel(names=list(LABELS)))
    premises = pairs(seed=VERSION)
    splits = {}
    for split, size in SIZES.items():
        rows = [pair for triple in itertools.islice(premises, size // len(LABELS)) for pair in triple]
        random.Random(VERSION).shuffle(rows)
        columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
        made = Dataset.from_dict(columns, features=features, split=split)
        # left to itself, the fingerprint differs from process to process
        splits[split] = Dataset(made.data, info=made.info, split=made.split, fingerprint=f"zoo-{VERSION}-{split}")
    shown = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()  # a bar for each split, of no time at all
    try:
        DatasetDict(splits).save_to_disk(directory)
    finally:
        if shown:
            datasets.enable_progress_bars()


def _load(named: str, advice: str) -> DatasetDict | Dataset:
    """What stands under a name on the hub or in a local directory, of whatever shape."""
    import datasets

    path = Path(named).expanduser()
    written = [path / "dataset_dict.json", path / "state.json"]
    name, _, config = (str(path), "", "") if path.is_dir() else named.partition(":")
    try:
        if any(mark.is_file() for mark in written):
            return datasets.load_from_disk(name, keep_in_memory=True)
        return datasets.load_dataset(name, config or None, keep_in_memory=path.is_dir())
    except Exception as error:  # the hub, the network, pyarrow and pandas each have exceptions of their own
        raise LabError(
            f"The data set {named!r} cannot be loaded: {type(error).__name__}: {error}\n{advice}"
        ) from error


def _shaped(loaded: DatasetDict | Dataset, named: str) -> DatasetDict:
    """The two splits and three columns that the exhibits read, whatever else the data set holds."""
    from datasets import DatasetDict

    splits = sorted(loaded) if isinstance(loaded, DatasetDict) else []
    validation = next((name for name in VALIDATION_NAMES if name in splits), None)
    if "train" not in splits or validation is None:
        found = ", ".join(splits) if splits else "no named splits"
        raise LabError(
            f"The data set {named!r} has {found}; the exhibits need a split named train and one for validation "
            f"({', '.join(VALIDATION_NAMES)})."
        )
    return DatasetDict(
        train=_labelled(loaded["train"], f"{named!r}, split train"),
        validation=_labelled(loaded[validation], f"{named!r}, split {validation}"),
    )


def _labelled(rows: Dataset, where: str) -> Dataset:
    """The rows that have a label, in the three columns, with the zoo's names for the labels."""
    from datasets import ClassLabel

    from bugs.lab.sentences.pairs import LABELS

    if missing := [column for column in COLUMNS if column not in rows.column_names]:
        raise LabError(
            f"The data set {where}, has no column {' or '.join(missing)}; it has {', '.join(rows.column_names)}. "
            f"The exhibits need {', '.join(COLUMNS)}, as in nyu-mll/glue:mnli."
        )
    rows = rows.select_columns(COLUMNS)
    feature, wanted = rows.features["label"], ClassLabel(names=list(LABELS))
    named = dict(enumerate(feature.names)) if isinstance(feature, ClassLabel) else {}
    numbers = {text: number for number, name in enumerate(LABELS) for text in (name, str(number))}
    found = set(rows.unique("label")) - UNLABELLED
    numbered = {label: numbers.get(str(named.get(label, label)).lower()) for label in found}
    if unknown := sorted(str(named.get(label, label)) for label in found if numbered[label] is None):
        raise LabError(
            f"The data set {where}, has labels that the exhibits do not know: {', '.join(unknown[:5])}. "
            "They need entailment, neutral and contradiction, by name or as 0, 1 and 2."
        )
    labels = rows["label"][:]
    if any(label in UNLABELLED for label in labels):
        kept = [row for row, label in enumerate(labels) if label not in UNLABELLED]
        rows, labels = rows.select(kept), [labels[row] for row in kept]
    if feature != wanted:
        rows = rows.remove_columns("label").add_column("label", [numbered[label] for label in labels])
        rows = rows.cast_column("label", wanted)
    return rows
