"""The result of `compare`, and its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from diagnostics.errors import CheckFailed, ends_at_the_caller
from diagnostics.facts.checks import ComparedCase, Difference, Pattern
from diagnostics.text.join import count_of, listed

__tracebackhide__ = ends_at_the_caller

NAMED = 4  # cases in a sentence
SENTENCE = 300  # characters of an exception


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`. Its text says where the results first differ, and what that suggests.

    Attributes:
        fast: the name of the function that was checked.
        slow: the name of the trusted function.
        cases: the inputs of both functions, and the differences.
        left_out: the number of cases that were skipped for lack of time.
    """

    fast: str
    slow: str
    cases: tuple[ComparedCase, ...]
    left_out: int = 0

    @property
    def ok(self) -> bool:
        """Whether values, gradients and dtypes are the same in every case."""
        return self.first is None

    @property
    def first(self) -> ComparedCase | None:
        """The first case that differs; None if there is none."""
        return next((case for case in self.cases if case.difference is not None), None)

    def assert_same(self) -> None:
        """Raise if the functions differ, for a test.

        Raises:
            CheckFailed: an AssertionError, whose message is the text of this result.
        """
        if not self.ok:
            raise CheckFailed(str(self))

    def __str__(self) -> str:
        """Say where the results differ, by how much, and what that points to."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        compared = [case for case in self.cases if not case.skipped]
        wrong = [case for case in compared if case.difference is not None]
        if not wrong:
            yield f"{self.fast} and {self.slow} are the same in {count_of(len(compared), 'case')}."
        else:
            yield (
                f"{self.fast} and {self.slow} differ in {len(wrong)} of {count_of(len(compared), 'case')}. "
                f"With {wrong[0].name}:"
            )
            assert wrong[0].difference is not None
            yield from (f"  {line}" for line in self._difference(wrong[0].difference, wrong[0]))
            if wrong[1:]:
                yield f"Also with {listed((case.name for case in wrong[1:]), most=NAMED)}."
            if same := [case.name for case in compared if case.difference is None]:
                yield f"The same with {listed(same, most=NAMED)}."
        for note in dict.fromkeys(note for case in self.cases for note in case.notes):
            yield f"Note: {note}."
        for case in self.cases:
            if case.skipped:
                yield f"Not compared: {case.name}; a function does not take them ({case.skipped[:SENTENCE]})."
        if self.left_out:
            yield f"Not compared: {count_of(self.left_out, 'case')}, for which no time was left."

    def _difference(self, found: Difference, case: ComparedCase) -> Iterator[str]:
        part = found.part
        match found.kind:
            case "values" | "precision":
                place = f"{_at(found.index)}{self._axes_of(found, case)}"
                yield f"{part} differs first at {place}: {self._two(found)}."
                yield _size(found)
                if found.kind == "precision":
                    yield (
                        f"In float64 both are the same, so {self.fast} or {self.slow} loses precision in "
                        f"{found.dtype}: by cancellation, as E[x²] - E[x]² does, or by adding up many small "
                        "numbers. Subtract before squaring, and add up in float32 or float64."
                    )
            case "shape":
                yield f"{part} has shape {found.got} from {self.fast} and {found.expected} from {self.slow}."
            case "dtype":
                yield (
                    f"{part} is {found.got} from {self.fast} and {found.expected} from {self.slow}. Convert one, "
                    "or make its buffers with the dtype of the input: torch.zeros_like(x), np.zeros(n, "
                    "dtype=x.dtype). check_dtype=False compares values alone."
                )
            case "structure":
                yield f"{self.fast} returned {found.got}, {self.slow} {found.expected}."
            case "no gradient":
                yield f"{part}: {found.got} from {self.fast}, {found.expected} from {self.slow}."
                yield (
                    "Look for .detach(), .data, .item(), torch.tensor(x), argmax, a comparison, or a conversion "
                    "to integers or to NumPy: no gradient passes these (diagnose rules no-gradient)."
                )
            case "raised":
                yield from self._raised(found)
            case "changed input":
                yield (
                    f"{self.fast} writes to {part.removeprefix('the ')}, which belongs to its caller; {self.slow} "
                    "leaves it alone. Copy it first, or use the operation that returns a new tensor (add, not "
                    "add_)."
                )
        if found.pattern is not None:
            yield self._pattern(found, found.pattern, case)
        if found.operation:
            yield (
                f"In {self.fast}, {found.operation}: each operand is repeated along the other's axis. If that is "
                "not meant, give both the same shape: squeeze(-1) or unsqueeze(-1) one of them "
                "(diagnose rules broadcast-loss)."
            )

    def _two(self, found: Difference) -> str:
        return f"{_number(found.got)} from {self.fast}, {_number(found.expected)} from {self.slow}"

    def _raised(self, found: Difference) -> Iterator[str]:
        yield f"{self.fast} raised {str(found.got).strip()[:SENTENCE]}"
        yield (
            f"{self.slow} returned a result. Both have to take these sizes; write a number for an axis that is "
            "fixed, or pass vary=False."
        )

    def _axes_of(self, found: Difference, case: ComparedCase) -> str:
        """Name the axes of the result where their sizes tell them apart."""
        names = [_axis(axis, found, case) for axis in range(len(found.shape))]
        return f" of axes ({', '.join(names)})" if names and not any(name.isdigit() for name in names) else ""

    def _pattern(self, found: Difference, pattern: Pattern, case: ComparedCase) -> str:
        axes = [_called(axis, found, case) for axis in pattern.axes]
        subject = found.part[0].upper() + found.part[1:]
        mine, theirs = f"{subject} of {self.fast}", f"that of {self.slow}"
        match pattern.kind:
            case "swapped axes":
                moved = [_called(axis, found, case) for place, axis in enumerate(pattern.axes) if place != axis]
                return (
                    f"{mine} equals {theirs} with {listed(sorted(moved))} exchanged: transpose or permute it back."
                )
            case "refilled":
                return (
                    f"{mine} holds the numbers of {theirs} in another order, as reshape or view gives where axes "
                    "were to be exchanged: use transpose or permute first, or einops.rearrange with named axes."
                )
            case "flipped":
                return f"{mine} equals {theirs} reversed along {axes[0]}."
            case "shifted":
                by = "later" if pattern.number == 1 else "earlier"
                return f"{mine} equals {theirs} one position {by} along {axes[0]}: an index is off by one."
            case "scaled":
                return f"{mine} is {pattern.number:.6g} times {theirs}{_reason(pattern, found, case)}."
            case "broadcast":
                along = f", repeated along its axis {pattern.axes[0]}" if pattern.axes else ""
                return (
                    f"{mine} has an axis too many{along}: two tensors were broadcast against each other that "
                    "should have been matched element by element (diagnose rules broadcast-loss)."
                )
            case "constant":
                return (
                    f"{mine} is the same all along {axes[0]}, {theirs} is not: a sum, mean or maximum over that "
                    "axis was broadcast along it."
                )
            case "other normalised axis":
                return (
                    f"{mine} has the same sum everywhere along {axes[1]}, {theirs} along {axes[0]}: dim or axis "
                    "of a softmax, mean or norm names the wrong one."
                )


def _at(index: tuple[int, ...] | None) -> str:
    return "its only value" if not index else f"[{', '.join(map(str, index))}]"


def _axis(axis: int, found: Difference, case: ComparedCase) -> str:
    """Return the name of an axis of the result, if one name alone has its size; else its number."""
    size = found.shape[axis]
    names = [name for name, known in case.sizes.items() if known == size]
    return names[0] if len(names) == 1 and found.shape.count(size) == 1 else str(axis)


def _called(axis: int, found: Difference, case: ComparedCase) -> str:
    name = _axis(axis, found, case)
    return f"axis {axis}" if name.isdigit() else f"axis {axis} ({name})"


def _size(found: Difference) -> str:
    largest = "" if found.largest is None else f", by up to {_number(found.largest)}"
    seen = f"{found.count:,} of {count_of(found.total, 'value')} differ{'' if found.count > 1 else 's'}{largest}"
    if not found.roundings:
        return f"{seen}; {found.dtype or 'these numbers'} have to be equal."
    return (
        f"{seen}. There {_number(found.tolerance)} is allowed: {found.roundings:.0f} roundings of {found.dtype}, "
        "of the value or of the root mean square of all."
    )


def _reason(pattern: Pattern, found: Difference, case: ComparedCase) -> str:
    """Name the axis whose size a factor is: a sum in the place of a mean."""
    factor = abs(pattern.number or 0.0)
    for name, size in case.sizes.items():
        if size > 1 and abs(factor - size) < 1e-3 * size:
            return f", the size of {name}: a sum in the place of a mean over it"
        if size > 1 and abs(factor * size - 1) < 1e-3:
            return f", one over the size of {name}: a mean in the place of a sum over it"
    return ""


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
