"""Compares the JSON reports of two runs: what differs, in causal order, and which difference explains the rest."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, get_args

from diagnostics.errors import InvalidInput
from diagnostics.text.join import capitalized, count_of, listed
from diagnostics.text.visible import visible

from .saved import finding_of, read_written

Kind = Literal[
    "version or environment",
    "setting",
    "seed",
    "initial weights",
    "rows",
    "order of the rows",
    "first step that differs",
    "result",
    "finding",
]
"""What may differ: a cause comes before what it may change."""

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
FIRST_STEP: Final = KINDS[6]
CHOSEN: Final = KINDS[:3]
"""What a person chooses. The others follow from it."""

DRAWN: Final = KINDS[3:6]
"""What a seed decides before the first step."""

UNSET: Final = 2**32
"""A seed above it was drawn by PyTorch itself: people choose smaller ones, and NumPy takes no others."""

ROUNDING: Final = 1e-5
"""Relative difference of two float32 losses below which the order of operations is the likeliest reason."""

NAMED: Final = 3
TEXT_WIDTH: Final = 88
RESULTS: Final = ("total_steps", "last_loss", "evaluation_loss")
RATES: Final = ("lr", "learning_rate")
MISSING: Final = "(not there)"
ARROW: Final = " → "


@dataclass(frozen=True)
class Difference:
    """One thing that differs.

    Attributes:
        name: of what differs, within its kind.
        first: its value in the first run, in words.
        second: in the second run.
    """

    kind: Kind
    name: str
    first: str
    second: str


@dataclass(frozen=True)
class RunDiff:
    """What differs between two runs.

    Attributes:
        first: name of the first report.
        second: of the second.
        differences: in causal order.
        notes: what could not be compared.
    """

    first: str
    second: str
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """One sentence: which difference explains the others."""
        if not self.differences:
            return "No difference."
        kinds = [kind for kind in KINDS if any(one.kind == kind for one in self.differences)]
        chosen = [kind for kind in kinds if kind in CHOSEN]
        follow = [kind for kind in kinds if kind in KINDS[3:]]
        if not chosen:
            first, *rest = kinds
            return " ".join([f"{ALONE[first]}", *([f"{_named(rest)} may follow from it."] if rest else [])])
        parts = [_counted(kind, [one for one in self.differences if one.kind == kind]) for kind in chosen]
        said = f"The runs differ in {listed(parts)}."
        if not follow:
            return f"{said} Nothing that was recorded of the training differs."
        single = len(parts) == 1 and parts[0].startswith("one ")
        return f"{said} {_named(follow)} may follow from {'it' if single else 'them'}."

    def to_json(self) -> str:
        """Return the differences as a JSON object."""
        found = {**asdict(self), "verdict": self.verdict}
        return json.dumps(found, indent=2)

    def to_markdown(self) -> str:
        """Return the differences as a table."""
        lines = [f"## {self.first} and {self.second}", "", self.verdict]
        if self.differences:
            lines += ["", f"| what differs | | {self.first} | {self.second} |", "|---|---|---|---|"]
        for one in self.differences:
            cells = (one.kind, one.name, one.first, one.second)
            lines.append(f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |")
        lines += [part for note in self.notes for part in ("", note)]
        return visible("\n".join(lines))

    def rendered(self, kind: str) -> str:
        """Render as ``text``, ``json`` or ``markdown``."""
        return {"json": self.to_json, "markdown": self.to_markdown}.get(kind, self.__str__)()

    def __str__(self) -> str:
        lines = [f"{self.first} and {self.second}", *textwrap.wrap(self.verdict, TEXT_WIDTH)]
        for kind in KINDS:
            found = [one for one in self.differences if one.kind == kind]
            if found:
                lines += ["", kind]
            for one in found:
                named = f"{one.name}: " if one.name else ""
                lines.append(f"  {named}{one.first}{ARROW}{one.second}" if one.second else f"  {named}{one.first}")
        if self.notes:
            lines += ["", *(line for note in self.notes for line in textwrap.wrap(note, TEXT_WIDTH))]
        return visible("\n".join(lines))


COUNTED: Final[Mapping[Kind, tuple[str, str]]] = {
    "version or environment": ("version or part of the environment", "versions or parts of the environment"),
    "setting": ("setting", "settings"),
    "seed": ("seed", "seeds"),
}

FOLLOWS: Final[Mapping[Kind, str]] = {
    "initial weights": "the initial weights",
    "rows": "the rows",
    "order of the rows": "the order of the rows",
    "first step that differs": "the losses",
    "result": "the results",
    "finding": "the findings",
}

ALONE: Final[Mapping[Kind, str]] = {
    "initial weights": "Environment, settings and seeds are the same, but the runs begin with different weights.",
    "rows": "Environment, settings, seeds and weights are the same, but the runs train on different rows.",
    "order of the rows": "The runs train on the same rows in another order; all before that is the same.",
    "first step that differs": "All that was recorded before the first step is the same, but the losses differ: "
    "an operation that is not deterministic, code that changed, or what is not recorded, such as settings of "
    "layers of your own.",
    "result": "The trainings went the same way as far as they were recorded, but their results differ.",
    "finding": "The trainings were the same, but not the findings: diagnose or the script's code differs.",
}


def diff_reports(first: Path, second: Path) -> RunDiff:
    """Compare two JSON reports.

    Args:
        first: file of one run.
        second: of the other.

    Raises:
        InvalidInput: one of them cannot be read; see `diagnostics.report.saved.read_written`.
    """
    one, other = read_written(first), read_written(second)
    names = (first.name, second.name) if first.name != second.name else (str(first), str(second))
    try:
        return _diff(names, one, other)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            f"{first} or {second} has another layout than this diagnose reads ({type(error).__name__}: {error}). "
            "Write both with the same version."
        ) from None


def _diff(names: tuple[str, str], one: Mapping[str, Any], other: Mapping[str, Any]) -> RunDiff:
    ours, theirs = one.get("fingerprint"), other.get("fingerprint")
    notes = [
        f"{name} holds no fingerprint of a training, so only the findings are compared."
        for name, known in zip(names, (ours, theirs), strict=True)
        if not known
    ]
    found = list(_of_findings(one, other))
    if ours and theirs:
        found = _with_seeds_that_matter([*_of_fingerprints(ours, theirs), *found])
        notes += _states((ours, theirs), found)
    found.sort(key=lambda each: KINDS.index(each.kind))
    return RunDiff(*names, tuple(found), tuple(notes))


def _with_seeds_that_matter(found: list[Difference]) -> list[Difference]:
    """Leave out seeds that nothing shows to matter: one that was never set differs in every run.

    A seed counts where weights or rows differ, or where nothing else explains the losses.
    """
    kinds = {one.kind for one in found}
    caused = bool(kinds.intersection(CHOSEN[:2]))
    if kinds.intersection(DRAWN) or (FIRST_STEP in kinds and not caused):
        return found
    return [one for one in found if one.kind != "seed"]


def _states(prints: Sequence[Any], found: Sequence[Difference]) -> Iterator[str]:
    """Say that global generators of Python and NumPy differ, where nothing else explains what does."""
    if not found or any(one.kind in CHOSEN for one in found):
        return
    ours, theirs = ([training["states"] for training in known["trainings"]] for known in prints)
    names = {name for a, b in zip(ours, theirs, strict=False) for name in a if a[name] != b.get(name)}
    if names:
        yield (
            f"Global random states differ when the training begins: {listed(sorted(names))}. They always do if "
            "the script does not seed them; it matters only if the script draws from them."
        )


def _of_fingerprints(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Difference]:
    yield from _of_values("version or environment", one["environment"], other["environment"])
    counts = len(one["trainings"]), len(other["trainings"])
    if counts[0] != counts[1]:
        yield Difference("result", "trainings", *map(str, counts))
    for number, (a, b) in enumerate(zip(one["trainings"], other["trainings"], strict=False), 1):
        where = f"training {number}, " if max(counts) > 1 else ""
        yield from _of_trainings(a, b, where)


def _of_trainings(a: Mapping[str, Any], b: Mapping[str, Any], where: str) -> Iterator[Difference]:
    yield from _of_values("setting", *_comparable(a["settings"], b["settings"]), where)
    yield from _of_values("seed", _seeds(a["seeds"]), _seeds(b["seeds"]), where)
    yield from _of_weights(a["weights"], b["weights"], where)
    yield from _of_rows(a, b, where)
    yield from _of_steps(a, b, where)
    yield from _of_values("result", _results(a), _results(b), where)


def _results(run: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", " "): run[name] for name in RESULTS}


def _of_values(kind: Kind, a: Mapping[str, Any], b: Mapping[str, Any], where: str = "") -> Iterator[Difference]:
    for name in {**a, **b}:
        if a.get(name, MISSING) != b.get(name, MISSING):
            yield Difference(kind, f"{where}{name}", *_values(a.get(name, MISSING), b.get(name, MISSING)))


def _comparable(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Leave out what another optimizer alone has or lacks: its class says that already."""
    if a.get("optimizer") == b.get("optimizer"):
        return dict(a), dict(b)
    both = a.keys() & b.keys()
    return {name: a[name] for name in a if name in both}, {name: b[name] for name in b if name in both}


def _seeds(written: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _in_words(value) for name, value in written.items()}


def _in_words(seed: Any) -> Any:
    if seed is None:
        return "not set"
    return f"{seed} (drawn)" if _is_drawn(seed) else seed


def _is_drawn(seed: Any) -> bool:
    return isinstance(seed, int) and seed >= UNSET


def _of_weights(a: Mapping[str, str], b: Mapping[str, str], where: str) -> Iterator[Difference]:
    if not a or not b:
        return
    if len(a) == len(b):  # Keras counts its models in a process: sequential_1
        b = dict(zip(a, b.values(), strict=True))
    names = {**a, **b}
    differing = [name for name in names if a.get(name) != b.get(name)]
    if differing:
        said = f"{len(differing)} of {count_of(len(names), 'parameter')}: {listed(differing, most=NAMED)}"
        yield Difference("initial weights", where.rstrip(", "), said, "")


def _of_rows(a: Mapping[str, Any], b: Mapping[str, Any], where: str) -> Iterator[Difference]:
    """Say whether the first batches hold other rows, or the same in another order."""
    steps = [step for step in a["rows"] if step in b["rows"]]
    ours, theirs = ([run["rows"][step].split() for step in steps] for run in (a, b))
    if ours == theirs:
        return
    step = next(int(steps[place]) for place in range(len(steps)) if ours[place] != theirs[place])
    pairs = list(zip(chain(*ours), chain(*theirs), strict=False))
    moved = sum(one != other for one, other in pairs)
    first, second = set(chain(*ours)), set(chain(*theirs))
    shared = len(first & second)
    of = f"of the first {'batch' if len(steps) == 1 else f'{len(steps)} batches'}"
    kind: Kind = "order of the rows"
    if first == second:
        said = f"the {count_of(shared, 'row')} {of} are the same, in another order from step {step} on"
    elif not shared:
        kind = "rows"
        said = f"no row {of} occurs in both runs: other data, or other random changes to it"
    elif 2 * moved < len(pairs):
        kind = "rows"
        said = f"{moved:,} of the {len(pairs):,} rows {of} differ, from step {step} on"
    else:
        said = f"{shared:,} of the {len(first | second):,} rows {of} occur in both runs, in another order"
    yield Difference(kind, where.rstrip(", "), said, "")


def _of_steps(a: Mapping[str, Any], b: Mapping[str, Any], where: str) -> Iterator[Difference]:
    """Name the first recorded step at which the losses differ, and the first at which the schedules do."""
    ours, theirs = _columns(a), _columns(b)
    common = [step for step in ours if step in theirs]
    before = None
    for step in common:
        (one, _), (other, _) = ours[step], theirs[step]
        if one != other:
            since = "" if before is None or before == step - 1 else f" (the last recorded one before is {before})"
            first, second = _values(one, other)
            rounding = "" if not _is_rounding(one, other) else ", which rounding can explain"
            yield Difference(FIRST_STEP, f"{where}step {step}{since}", f"loss {first}", f"{second}{rounding}")
            break
        before = step
    if any(a["settings"].get(name) != b["settings"].get(name) for name in RATES):
        return  # which says more
    for step in common:
        (_, one), (_, other) = ours[step], theirs[step]
        if one != other:
            yield Difference("setting", f"{where}learning rate of step {step}", *_values(one, other))
            break


def _columns(run: Mapping[str, Any]) -> dict[int, tuple[Any, Any]]:
    """Return loss and learning rate by step."""
    return {
        step: (loss, rate)
        for step, loss, rate in zip(run["steps"], run["losses"], run["learning_rates"], strict=True)
    }


def _is_rounding(one: Any, other: Any) -> bool:
    known = all(isinstance(value, float) and math.isfinite(value) for value in (one, other))
    return known and abs(one - other) <= ROUNDING * max(abs(one), abs(other))


def _of_findings(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Difference]:
    found = [_severities(report["findings"]) for report in (one, other)]
    for rule in {**found[0], **found[1]}:
        if found[0].get(rule) != found[1].get(rule):
            yield Difference("finding", rule, *map(_said_of, [rule] * 2, found, (one, other)))


def _said_of(rule: str, severities: Mapping[str, str], written: Mapping[str, Any]) -> str:
    """Return the severity of a finding; what its absence means: a rule may need more than what it is about."""
    absent = "could not be checked" if rule in written["not_applicable"] else "not reported"
    return severities.get(rule, absent)


def _severities(written: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the severity by rule, also of findings that follow from others."""
    found: dict[str, str] = {}
    for finding in map(finding_of, written):
        for one in (finding, *finding.consequences):
            found.setdefault(one.rule, one.severity)
    return found


def _values(first: Any, second: Any) -> tuple[str, str]:
    """Write two values that differ; numbers with as many digits as it takes to tell them apart."""
    if isinstance(first, float) and isinstance(second, float):
        for digits in (6, 9, 17):
            if (words := (f"{first:.{digits}g}", f"{second:.{digits}g}"))[0] != words[1]:
                return words
    return str(first), str(second)


def _counted(kind: Kind, found: Sequence[Difference]) -> str:
    """Name the only difference of a kind, or count them."""
    one, several = COUNTED[kind]
    if len(found) == 1 or kind == "seed":  # of several generators, but one call sets them
        return f"one {one} ({found[0].name}: {found[0].first}{ARROW}{found[0].second})"
    return f"{len(found)} {several} ({listed((each.name for each in found), most=NAMED)})"


def _named(kinds: Sequence[Kind]) -> str:
    return capitalized(listed(FOLLOWS[kind] for kind in kinds))
