"""`baselines`: scores that a model must beat, from chance, a constant and a linear model."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.errors import InvalidInput, typed_message, what
from diagnostics.facts.data import Baseline, BaselineFacts
from diagnostics.text.join import count_of
from diagnostics.text.visible import escaped, visible

if TYPE_CHECKING:
    from diagnostics.collectors.baselines.table import Pair, Table

SECONDS = 30.0
READING = 0.4  # of the seconds; the evaluation rows get half as much


def baselines(
    data: Any,
    *,
    inputs: str | Sequence[str] | None = None,
    target: str | None = None,
    evaluation: Any = None,
    task: Literal["classification", "regression"] | None = None,
    metric: str | Callable[[Any, Any], float] | None = None,
    higher_is_better: bool | None = None,
    model_score: float | None = None,
    seconds: float = SECONDS,
) -> Baselines:
    """Score simple predictions on a model's data: chance, a constant, and a linear model.

    Do not tune the model before it beats these. The constant is the most common class, or the mean or median; the
    linear model is a logistic or ridge regression on the numbers of the inputs, or on the 2,000 most common words
    or tokens.

        print(diagnostics.baselines((x, y)))
        print(diagnostics.baselines(loader, evaluation=test_loader, model_score=0.91))
        print(diagnostics.baselines(dataset, inputs="text", target="label", evaluation=test_set))
        print(diagnostics.baselines(prices, metric="mean_absolute_error"))

    At most 10,000 rows of each set are read, spread over the data if it has an index, and 2,048 numbers per input.
    Nothing is changed: none of your iterators is advanced, and all random states stay as they are.

    Args:
        data: arrays ``(x, y)`` of shape (rows, ...), where x may be a dict or tuple of arrays; a `DataLoader`; a
            `datasets.Dataset`; a `tf.data.Dataset` or `keras.utils.PyDataset`; or a list of batches. A batch is a
            pair (inputs, target), a longer tuple with the target last (in Keras' data ``(x, y, sample_weight)``),
            or a dict with a common name for the target.
        inputs: columns of a `datasets.Dataset`; by default, all except the target.
        target: its target column; by default, ``label`` or a similar name.
        evaluation: the rows to score on, of the same kind. By default, a random fifth of the rows is held out.
        task: by default, inferred from the targets: whole numbers, strings, one-hot rows, and 0.0 and 1.0 are
            classes, other floats are regression targets.
        metric: ``accuracy`` (the default for classes), ``balanced_accuracy``, ``mean_squared_error`` (the default
            for a regression), ``mean_absolute_error``, or a function of (predictions, targets), arrays (rows,).
        higher_is_better: whether a higher value of such a function is better.
        model_score: the model's own score for comparison, by the same metric on the same rows.
        seconds: time limit for reading and fitting.

    Returns:
        A `Baselines`: `must_beat`, `beaten`, `facts`; text when printed, a table in a notebook.

    Raises:
        InvalidInput: the data cannot be read without consuming it, has no target, or does not fit the task.
    """
    from diagnostics.collectors.baselines.scores import scored

    for name, value in (("seconds", seconds), ("model_score", model_score)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InvalidInput(f"baselines({name}={value!r}): expected a number.")
    if not seconds > 0:
        raise InvalidInput(f"baselines(seconds={seconds!r}): expected a number above 0.")
    if model_score is not None and not math.isfinite(model_score):
        raise InvalidInput(f"baselines(model_score={model_score!r}): expected a finite number.")
    columns = [inputs] if isinstance(inputs, str) else inputs
    begun = time.monotonic()
    with own_run():
        table = _read(data, columns, target, begun + READING * seconds)
        other = None
        if evaluation is not None:
            other = _read(evaluation, columns, target, time.monotonic() + READING / 2 * seconds)
        facts = scored(table, other, task, metric, higher_is_better, begun + seconds)
    return Baselines(facts, model_score, time.monotonic() - begun, float(seconds))


def _read(data: Any, inputs: Sequence[str] | None, target: str | None, deadline: float) -> Table:
    from diagnostics.collectors.baselines.table import collected
    from diagnostics.collectors.shared.pipeline import StageFailed, UsersCodeRaised

    try:
        # Closed at once, also when it raises: random states are restored then.
        with contextlib.closing(_pairs(data, inputs, target)) as pairs:
            return collected(pairs, deadline)
    except StageFailed as reason:
        raise InvalidInput(f"baselines() cannot read this data. {reason}") from None
    except UsersCodeRaised as raised:
        cause = raised.__cause__ or raised
        raise InvalidInput(f"baselines() could not read the data, which raised {typed_message(cause)}") from cause


def _pairs(data: Any, inputs: Sequence[str] | None, target: str | None) -> Generator[Pair]:
    from diagnostics.collectors.baselines import sources

    sources.check_readable_again(data)
    hub = sys.modules.get("datasets")
    if hub is not None and isinstance(data, hub.DatasetDict):
        splits = ", ".join(map(str, data))
        raise InvalidInput(
            f"baselines() was given a DatasetDict of several splits ({splits}). Pass one of them, and another as "
            'evaluation: baselines(data["train"], evaluation=data["test"]).'
        )
    if hub is not None and isinstance(data, hub.Dataset):
        pairs = sources.hub_pairs(data, inputs, target)
        if "torch" not in sys.modules:
            return pairs
        from diagnostics.collectors.baselines.pytorch import seeded

        return seeded(data, pairs)
    if inputs is not None or target is not None:
        raise InvalidInput(
            f"baselines() was given inputs= or target= together with {what(data)}: they name columns of a "
            "datasets.Dataset."
        )
    if _is_of("tensorflow", "data.Dataset", data) or _is_of("keras", "utils.PyDataset", data):
        from diagnostics.collectors.baselines.keras import keras_pairs

        return keras_pairs(data)
    if isinstance(data, tuple | list) and len(data) == 2 and _is_pair(data):
        return sources.array_pairs(*data)
    if isinstance(data, list):
        return sources.batch_pairs(data)
    if isinstance(data, tuple):
        raise InvalidInput(
            f"baselines() was given a tuple of {len(data)}. Pass inputs and target as arrays of as many rows, "
            "(x, y), or a list of batches."
        )
    if "torch" in sys.modules and not isinstance(data, str | Mapping):
        from diagnostics.collectors.baselines.pytorch import loader_pairs
        from diagnostics.collectors.pytorch.data import not_batches

        if (why := not_batches(data)) is None:
            return loader_pairs(data)
        raise InvalidInput(f"baselines() was given {what(data)} as data{why}")
    raise InvalidInput(
        f"baselines() was given {what(data)} as data. It takes arrays (x, y), a DataLoader, a datasets.Dataset, a "
        "tf.data.Dataset, a keras.utils.PyDataset, or a list of batches."
    )


def _is_pair(data: Sequence[Any]) -> bool:
    """Whether two parts are inputs and targets of many rows, and not two batches."""
    from diagnostics.collectors.baselines.sources import is_array

    x, y = data
    numbers = isinstance(y, list) and bool(y) and isinstance(y[0], str | int | float)
    return (is_array(y) and not (isinstance(x, tuple | list) and isinstance(y, tuple | list))) or numbers


def _is_of(module: str, name: str, value: Any) -> bool:
    """Whether a value is an instance of a class of a module, if that was imported."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return isinstance(found, type) and isinstance(value, found)


@dataclass(frozen=True, repr=False)
class Baselines:
    """The result of `diagnostics.baselines`.

    Attributes:
        facts: the scores, and the rows that they were computed on.
        model_score: the model's own score, as given; None if not given.
        seconds: the time that everything took.
        budget: the time limit in seconds.
    """

    facts: BaselineFacts
    model_score: float | None
    seconds: float
    budget: float

    @property
    def best(self) -> Baseline:
        """The baseline with the best score: what the model must beat."""
        known = [one for one in self.facts.baselines if one.score is not None]
        sign = 1 if self.facts.higher_is_better else -1
        return max(known, key=lambda one: sign * (one.score or 0.0))

    @property
    def must_beat(self) -> float:
        """The score of the best baseline."""
        return float(self.best.score or 0.0)

    @property
    def beaten(self) -> bool | None:
        """Whether the model is better than all of them; None without its score, or if the rows are too few."""
        if self.model_score is None:
            return None
        gained = (self.model_score - self.must_beat) * (1 if self.facts.higher_is_better else -1)
        margin = self.best.margin or 0.0
        return None if 0 < gained <= margin else gained > 0

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        said = {"must_beat": self.must_beat, "best": self.best.name, "model_score": self.model_score}
        return {**said, "beaten": self.beaten, "seconds": round(self.seconds, 3), **asdict(self.facts)}

    def to_json(self, indent: int | None = 2) -> str:
        """Return everything as a JSON object."""
        return json.dumps(self.as_dict(), indent=indent)

    def to_html(self) -> str:
        """Return a table of the scores, with the sentences below it; it needs no style sheet."""
        rows = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td>{score}</td><td "
            f"style='text-align:left'>{escaped(said)}</td></tr>"
            for name, score, said in self._rows()
        )
        words = "".join(f"<p>{escaped(sentence)}</p>" for sentence in self._sentences())
        return f"<div><b>{escaped(self._title())}</b><table><tbody>{rows}</tbody></table>{words}</div>"

    _repr_html_ = to_html

    def __str__(self) -> str:
        rows = [f"  {name:9} {score:>10}  {said}" for name, score, said in self._rows()]
        return visible("\n".join([self._title(), *rows, "", *self._sentences()]))

    __repr__ = __str__

    def _title(self) -> str:
        facts = self.facts
        kind = facts.task if facts.classes is None else f"{count_of(facts.classes, 'class', 'classes')}"
        better = "higher" if facts.higher_is_better else "lower"
        held = "held out" if facts.held_out else "of the evaluation data"
        return (
            f"baselines, {kind}: {facts.metric.replace('_', ' ')}, {better} is better; "
            f"{count_of(facts.fitted_rows, 'row')} to fit, {facts.scored_rows:,} {held} to score"
        )

    def _rows(self) -> list[tuple[str, str, str]]:
        rows: list[tuple[str, str, str]] = []
        for one in self.facts.baselines:
            rows.append((one.name, "-" if one.score is None else f"{one.score:.4g}", one.detail))
        if self.model_score is not None:
            rows.append(("the model", f"{self.model_score:.4g}", "as given"))
        return rows

    def _sentences(self) -> list[str]:
        best, facts = self.best, self.facts
        within = "" if best.margin is None else f", which {facts.scored_rows:,} rows tell to ±{best.margin:.2g}"
        said = [f"The model must beat {self.must_beat:.4g} ({best.name}{within}), scored on the same rows."]
        if self.model_score is not None:
            said.append(self._verdict())
        said += [f"Note: {note}." for note in facts.notes]
        return [*said, f"{self.seconds:.1f} s of the {self.budget:g} s given."]

    def _verdict(self) -> str:
        if self.beaten:
            return f"It does: {self.model_score:.4g}."
        if self.beaten is None:
            return (
                f"Its {self.model_score:.4g} is ahead by less than so few rows can tell: score both on more "
                "of them, or train with several seeds."
            )
        if self.model_score == self.must_beat:
            return f"It is as good as the {self.best.name} prediction, and no better: {self.model_score:.4g}."
        return (
            f"It does not: {self.model_score:.4g}. Before tuning anything, find out why: overfit it on a few "
            "examples (diagnostics.overfit), and look at the data where it enters the model."
        )
