"""Describes where a NaN or inf came from, for the rules that report it."""

from __future__ import annotations

from collections.abc import Sequence

from diagnostics.facts.nonfinite import FrameFacts, OriginFacts, ValueRange

from .join import listed
from .names import describe_parameters

FRAMES_SHOWN = 4  # in a message; the evidence holds them all
WIDTH = 96  # columns that a message has
SHORTEST = 28  # columns in which the name of a module is still recognisable
LIMITS = {"float16": 65504.0, "bfloat16": 3.39e38, "float32": 3.40e38}  # largest finite values


def module(origin: OriginFacts) -> str:
    """Name the module of the origin: ``layer 2 (Linear)``, ``the model itself (Net), outside its layers``."""
    if origin.module and (origin.module_kind or "").startswith("probe in "):
        return f'the code just before the probe "{origin.module}" in {(origin.module_kind or "")[9:]}'
    if origin.module:
        numbered = "layer " if origin.module.replace(".", "").isdigit() else ""
        return f"{numbered}{origin.module} ({origin.module_kind})"
    return f"the model itself ({origin.module_kind}), outside its layers"


def parameters(origin: OriginFacts) -> str:
    """Name the affected parameters: ``all 6 parameters``, ``1 of the 6 parameters (head.weight)``."""
    count, whole = len(origin.parameters), origin.num_parameters
    if count == whole:
        return f"all {whole} parameters" if whole > 1 else origin.parameters[0]
    return f"{count} of the {whole} parameters ({describe_parameters(dict.fromkeys(origin.parameters, 1))})"


def how_known(origin: OriginFacts) -> str:
    """Describe in one sentence how the origin was found."""
    if origin.replayed:
        return "Found by replaying that step on a copy of the model with the same weights, batch and random state."
    reason = origin.reason.removeprefix("the step was not replayed, because ")
    return (
        f"Found by inspecting the model's state at step {origin.noticed}; step {origin.step} was not replayed"
        + (f", because {reason}." if reason else ".")
    )


def table(frames: Sequence[FrameFacts]) -> str:
    """Lay out the last frames, one a line, with smallest and largest absolute values; empty without frames."""
    return "\n".join(frame_lines(frames[-FRAMES_SHOWN:], WIDTH)) if frames else ""


def frame_lines(frames: Sequence[FrameFacts], width: int, shorten: bool = False) -> list[str]:
    """Lay out module calls with smallest and largest absolute values: one a line, or two where names are long.

    Args:
        frames: the calls.
        width: columns.
        shorten: whether long names may be shortened to keep to one line.
    """
    rows = [("smallest to largest |x|", "weights", "inputs", "outputs")]
    for frame in frames:
        rows.append((call(frame), words(frame.weights), words(frame.inputs), words(frame.outputs)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    room = width - sum(widths[1:]) - 6
    if widths[0] > room >= SHORTEST and shorten:
        names = _shortened([row[0] for row in rows[1:]], room)
        rows[1:] = [(name, *row[1:]) for name, row in zip(names, rows[1:], strict=True)]
        widths[0] = max(len(row[0]) for row in rows)
    if widths[0] <= room:
        return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines = [f"{rows[0][0]}:"]
    for name, *values in rows[1:]:
        known = [f"{column} {value}" for column, value in zip(rows[0][1:], values, strict=True) if value != "-"]
        lines += [name, f"    {'; '.join(known)}"]
    return lines


def _shortened(names: Sequence[str], room: int) -> list[str]:
    """Abbreviate the leading parts of all paths until these fit: ``d.t.layer.0.ffn.lin1``."""
    short = list(names)
    for depth in range(1, max(name.count(".") for name in names) + 1):
        if max(len(name.partition(" ")[0]) for name in short) <= room:
            break
        short = [_initials(name, depth) for name in names]
    return [name if len(name) <= room else f"{name[: room - 1]}\N{HORIZONTAL ELLIPSIS}" for name in short]


def _initials(name: str, depth: int) -> str:
    path, space, kind = name.partition(" ")
    parts = path.split(".")
    first = min(depth, len(parts) - 1)
    return ".".join([part[:1] for part in parts[:first]] + parts[first:]) + space + kind


def call(frame: FrameFacts) -> str:
    """Name what was called: ``encoder.fc1 Linear``, ``probe "after attention" in encoder``."""
    if frame.kind.startswith("probe in "):
        return f'probe "{frame.module}"' + frame.kind.removeprefix("probe").removesuffix(" in the model")
    return f"{frame.module or 'model'} {frame.kind}"


def words(values: ValueRange | None) -> str:
    """Describe a range: ``1.2e-05 to 0.31``, with what is not finite counted: ``0 to 6.5e+04, 3 inf``."""
    if values is None:
        return "-"
    finite = "none finite" if values.lowest is None else f"{values.lowest:.3g} to {values.highest:.3g}"
    counts = ((values.nan, "NaN"), (values.inf, "inf"), (values.minus_inf, "-inf"))
    return ", ".join([finite, *(f"{count} {name}" for count, name in counts if count)])


def evidence(origin: OriginFacts) -> dict[str, object]:
    """Return what JSON can hold of it."""
    return {
        "kind": origin.kind,
        "module": origin.module,
        "replayed": origin.replayed,
        "noticed": origin.noticed,
        "parameters": list(origin.parameters),
        "examples": list(origin.rows),
        "batch_size": origin.batch_size,
        "batch_fingerprint": origin.batch_fingerprint,
        "learning_rate": origin.learning_rate,
        "frames": [
            f"{call(frame)} {frame.dtype}: weights {words(frame.weights)}; inputs "
            f"{words(frame.inputs)}; outputs {words(frame.outputs)}"
            for frame in origin.frames
        ],
    }


def overflowed(origin: OriginFacts) -> bool:
    """Whether a value overflowed in half precision and is finite in float32."""
    over = origin.overflow
    return over is not None and over.highest > over.limit


def examples(origin: OriginFacts) -> str:
    """Name the affected examples: `` Affected: 2 of the 32 examples (indices 3 and 5).``."""
    rows, size = origin.rows, origin.batch_size
    if not rows or not size or len(rows) == size:
        return ""
    which = "index" if len(rows) == 1 else "indices"
    return f" Affected: {len(rows)} of the {size} examples ({which} {listed(rows, most=8)})."
