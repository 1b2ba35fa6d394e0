"""The base class of all rules."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

from diagnostics.errors import InvalidInput
from diagnostics.facts.training import LossHistory
from diagnostics.facts.where import Where
from diagnostics.facts.written import WrittenPatterns

from .finding import SEVERITIES, STAGES, Finding, Severity, Stage

SECTIONS = (
    "What it does",
    "Why it is bad",
    "Example",
    "Instead",
    "Thresholds",
    "Known problems",
    "Sources",
)
"""The sections of a rule's docstring, in order. The docstring is the rule's page in the book."""

Fix = str | Sequence[str]
"""A fix, or several alternatives, the most likely first."""

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class NotApplicable(Exception):
    """Raised by a check without its evidence; the message says what is missing.

    It is empty if another check of the rule says that better, as of a loss that this check is not about.
    """


class Need(NamedTuple):
    """A fact that a check takes, and whether it is required."""

    kind: type
    required: bool


CheckMethod = TypeVar("CheckMethod", bound=Callable[..., Finding | None])


def check(method: CheckMethod) -> CheckMethod:
    """Mark a method of a rule as a check: it is called once, as soon as the facts that it takes are known."""
    method.__is_check__ = True  # type: ignore[attr-defined]
    return method


class Rule:
    """One bad pattern, found from facts alone.

    Each method marked with `check` declares by annotation which facts it takes. It returns a `Finding`, or None
    for "clean", or raises `NotApplicable`. A check with a parameter annotated ``X | None`` waits until the phase
    is over (a stage of an examination, the report of a watched run); the parameter is None if `X` is not known by
    then.

        class StaleTokenizer(Rule):
            '''The tokenizer is older than the checkpoint.'''

            stage = "data"
            severity = "warning"

            @check
            def from_batch(self, batch: BatchFacts, model: ModelFacts) -> Finding | None:
                ...

    A rule of this library has its own file under `diagnostics/rules/<stage>/`, which gives its stage and name.
    Any other rule declares its stage; its name is that of the class, in lower case with hyphens, unless it
    declares one. Rules in the entry point group ``diagnostics.rules`` are evaluated too.

    Attributes:
        name: the id in reports, in ignores and of the page.
        severity: the default for its findings.
        causes: rules whose findings follow from this one's: they are listed under it.
        FIXES: by library (``torch``, ``transformers``, ``keras``; ``peft`` for a model with adapters, ``trainer``
            for one that a Trainer trains, ``lightning`` for a LightningModule), if the fix depends on nothing
            else. ``TrainingArguments(`` becomes the class that the Trainer takes its settings by.
    """

    name: ClassVar[str]
    stage: ClassVar[Stage]
    severity: ClassVar[Severity]
    causes: ClassVar[tuple[str, ...]] = ()
    FIXES: ClassVar[Mapping[str, Fix]] = {}
    _needs: ClassVar[Mapping[str, Mapping[str, Need]]] = {}

    def __init_subclass__(cls) -> None:
        """Read name, stage and checks.

        Raises:
            InvalidInput: the declaration of the rule is wrong.
        """
        super().__init_subclass__()
        package, _, place = cls.__module__.partition(".rules.")
        of_library = package == __name__.partition(".")[0]
        folder, *_, file = (*place.split("."), cls.__module__.rpartition(".")[2])
        if "name" not in vars(cls):
            cls.name = file.replace("_", "-") if of_library else hyphenated(cls.__name__)
        if of_library and folder in STAGES:
            cls.stage = folder
        own = {name: _needs_of(cls, method) for name, method in vars(cls).items() if _is_check(cls, name, method)}
        cls._needs = {**cls._needs, **own}
        if own:
            _validate(cls)

    def checks(self) -> Mapping[str, Mapping[str, Need]]:
        """Return this rule's checks by name, each with its facts by parameter."""
        return self._needs

    def summary(self) -> str:
        """Return the first sentence of the page: the pattern in a few words."""
        return (inspect.getdoc(self) or "").split("\n\n")[0].replace("\n", " ")

    def after_run(self, finding: Finding, losses: LossHistory) -> Finding:
        """Return a finding as it is worth when the run, or all trainings of its model, are over.

        A rule that predicts from the first step how the run will go returns a note where the run went otherwise.
        So does one that judges a first stage by itself where a later stage of the same model went otherwise.

        Args:
            finding: of this rule, from the first step, or from a training that others of the model followed.
            losses: of the whole run, and of the trainings that followed.
        """
        return finding

    def untrained(self, finding: Finding) -> Collection[str]:
        """Return the parameters or layers that a training leaves out, as a finding says.

        The finding is dropped if later trainings of the model change them, and a note if earlier ones did.
        """
        return ()

    def intended(self, finding: Finding, written: WrittenPatterns) -> str:
        """Return what in the source of the script shows that a finding may be intended; it is a note then."""
        return ""

    def explains(self, cause: Finding, finding: Finding) -> bool | None:
        """Return whether one finding follows from another of the same training, where the measured numbers decide.

        Args:
            cause: of this rule, or of the other.
            finding: of the other rule, or of this one: the rules of both are asked.

        Returns:
            None for what `causes` declares.
        """
        return None

    def found(
        self,
        message: str,
        *,
        fix: Fix | Mapping[str, Fix] | None = None,
        evidence: Mapping[str, Any] | None = None,
        where: Where | None = None,
        severity: Severity | None = None,
        step: int | None = None,
    ) -> Finding:
        """Build the finding, with this rule's name, stage and severity.

        Args:
            message: what was seen, with the numbers, and why that cannot work.
            fix: what to change, or alternatives, or either by library; None for `FIXES`.
            evidence: the numbers by name; plain values that JSON can hold.
            where: a line in the user's code, if one is known.
            severity: if it differs from the rule's.
            step: the training step, counted from 0, if there is one.
        """
        fixes = self.FIXES if fix is None else fix if isinstance(fix, Mapping) else {"torch": fix}
        by_library = {library: (one,) if isinstance(one, str) else tuple(one) for library, one in fixes.items()}
        first, *others = by_library.get("torch") or next(iter(by_library.values()))
        return Finding(
            rule=self.name,
            severity=severity or self.severity,
            stage=self.stage,
            message=message,
            fix=first,
            alternatives=tuple(others),
            fixes=by_library,
            evidence=evidence or {},
            where=where,
            step=step,
        )


def hyphenated(name: str) -> str:
    """Return a class's name as a rule's: ``StaleTokenizer`` as ``stale-tokenizer``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name.strip("_")).lower()


def _is_check(cls: type[Rule], name: str, method: Any) -> bool:
    marked = getattr(method, "__is_check__", False)
    if not marked and name.startswith("from_") and inspect.isfunction(method):
        raise InvalidInput(f"{cls.__name__}.{name} looks like a check but is not marked. Put @check above it.")
    return bool(marked)


def _needs_of(cls: type[Rule], method: Any) -> dict[str, Need]:
    named = f"{cls.__name__}.{method.__name__}"
    try:
        hints = typing.get_type_hints(method)
    except NameError as missing:
        raise InvalidInput(
            f"{named}: an annotation cannot be read ({missing}). Import the facts at the top of the module, not "
            "under TYPE_CHECKING."
        ) from None
    parameters = list(inspect.signature(method).parameters)[1:]
    if not parameters:
        raise InvalidInput(f"{named} takes no facts. Name some: def {method.__name__}(self, batch: BatchFacts).")
    return {parameter: _need(f"{named}, {parameter}", hints.get(parameter)) for parameter in parameters}


def _need(place: str, hint: Any) -> Need:
    kinds = [hint]
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        kinds = [kind for kind in typing.get_args(hint) if kind is not types.NoneType]
    if len(kinds) != 1 or not inspect.isclass(kinds[0]):
        raise InvalidInput(f"{place}: annotated with {hint}. A check takes one kind of facts, X or X | None.")
    return Need(kinds[0], required=kinds[0] is hint)


def _validate(cls: type[Rule]) -> None:
    if _NAME.fullmatch(cls.name) is None:
        raise InvalidInput(f"The rule {cls.__name__} is named {cls.name!r}. It takes words joined by hyphens.")
    for attribute, allowed in (("stage", STAGES), ("severity", SEVERITIES)):
        if (given := getattr(cls, attribute, None)) not in allowed:
            was = "declares none" if given is None else f"declares {given!r}"
            raise InvalidInput(f"The rule {cls.__name__} {was} as its {attribute}. Choose: {', '.join(allowed)}.")
    if not (inspect.getdoc(cls) or "").strip() or inspect.getdoc(cls) == inspect.getdoc(Rule):
        raise InvalidInput(f"The rule {cls.__name__} has no docstring. Its first sentence must name the pattern.")
    if not all(any(need.required for need in needs.values()) for needs in cls._needs.values()):
        raise InvalidInput(f"The rule {cls.__name__} has a check whose facts are all optional. Require one.")
