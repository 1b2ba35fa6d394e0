"""Says what the values in a failed expression prove: which one is empty, None, missing, or of another kind.

Each reader knows one way in which Python, or a library's compiled code, refuses an expression. It names the value
that decides, where the source gave it, and what to change.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType, UnionType
from typing import Any

from diagnostics.text.join import count_of, listed

from .expression import Expression, shown
from .values import (
    MISSING,
    attributes_of,
    class_of,
    described,
    evaluate,
    is_a,
    is_array,
    keys_of,
    length_of,
)

RULE = "mismatched-call"
MOST_READ = 400  # characters of a message


@dataclass(frozen=True)
class Error:
    """The beginning of an exception's message, and whether an installed package's line raised it."""

    message: str
    in_library: bool

    @property
    def is_of_a_tuple(self) -> bool:
        """Whether a tuple was refused: by compiled code, or by a library that says so, as others take one."""
        return not self.in_library or "tuple" in self.message


@dataclass(frozen=True)
class Proof:
    """What the values of an expression prove.

    Attributes:
        cause: a sentence or two, the deciding value in the first.
        fixes: what to change, the most likely first.
        rule: that reports it.
        is_whole: whether it explains the failure by itself, whatever the message is usually about.
    """

    cause: str
    fixes: tuple[str, ...]
    rule: str = RULE
    is_whole: bool = False


def proof_of(kind: type[BaseException], message: str, failed: Expression, *, in_library: bool) -> Proof | None:
    """Return what the values of a failed expression prove; None if they decide nothing.

    Args:
        kind: class of the exception.
        message: of it.
        failed: the innermost expression of the user's own.
        in_library: whether an installed package's line raised it, in the call of that expression.
    """
    if isinstance(failed.node, ast.Raise | ast.Assert):  # a check of the user's own explains itself
        return None
    error = Error(message[:MOST_READ], in_library)
    proofs = (
        reader(error, failed, failed.node)
        for kinds, nodes, reader in (_IN_ANY_FRAME if in_library else (*_IN_OWN_FRAME, *_IN_ANY_FRAME))
        if issubclass(kind, kinds) and isinstance(failed.node, nodes)
    )
    return next((proof for proof in proofs if proof is not None), None)


def _given_by(failed: Expression, source: str) -> str:
    """Say which line gave a variable, or the object that holds it, its value; empty if that is not certain."""
    origin = failed.origin(source)
    if origin is not None:
        return f" Line {origin.lineno} sets it: {shown(origin)}."
    owner = source.rpartition(".")[0]
    origin = failed.origin(owner) if owner else None
    return "" if origin is None else f" Line {origin.lineno} sets {owner}: {shown(origin)}."


def _look(failed: Expression, source: str) -> str:
    origin = failed.origin(source)
    return f"check what gives {source} its value" + ("" if origin is None else f", line {origin.lineno}")


def _index(error: Error, failed: Expression, node: ast.Subscript) -> Proof | None:
    held, key = evaluate(node.value, failed.names), evaluate(node.slice, failed.names)
    length, source = length_of(held), shown(node.value)
    if not length or type(key) is not int or is_array(held):
        return None
    index = shown(node.slice)
    told = "" if isinstance(node.slice, ast.Constant) else f", and {index} is {key}"
    return Proof(
        f"{source} has {count_of(length, 'element')}, with indices up to {length - 1}{told}: {source} is "
        f"{described(held, parts=False)}.{_given_by(failed, source)}",
        (
            _look(failed, source)
            if isinstance(node.slice, ast.Constant)
            else f"compare {index} with len({source}) where it is computed: a count from 1, or of another list",
        ),
    )


def _key(error: Error, failed: Expression, node: ast.Subscript) -> Proof | None:
    held, key = evaluate(node.value, failed.names), evaluate(node.slice, failed.names)
    keys = keys_of(held)
    if keys is None or key is MISSING or not is_a(key, str, int) or key in keys or str(key) not in error.message:
        return None
    source, texts = shown(node.value), [str(name) for name in keys if is_a(name, str, int)]
    near = [name for name in texts if name.lower().strip() == str(key).lower().strip()]
    near = near or difflib.get_close_matches(str(key), texts, n=1, cutoff=0.8)
    hint = f" The closest is {near[0]!r}." if near else ""
    asked = f"{key!r}" if isinstance(node.slice, ast.Constant) else f"{key!r} ({shown(node.slice)})"
    fix = f"{source}[{near[0]!r}]" if near else f"ask {source} for a key that it has"
    return Proof(
        f"{source} has no key {asked}: it is {described(held)}.{hint}{_given_by(failed, source)}",
        (fix, f"{_look(failed, source)}: an earlier step named the entry otherwise, or dropped it"),
    )


def _attribute(error: Error, failed: Expression, node: ast.Attribute) -> Proof | None:
    value, source = evaluate(node.value, failed.names), shown(node.value)
    if value is MISSING or value is None or is_a(value, type) or node.attr not in error.message:
        return None
    if (several := _of_several(failed, source, value)) is not None:
        return several
    plain = is_a(value, list, tuple, dict, str, int, float) or is_array(value)
    if plain and type(value).__module__ in ("builtins", "numpy", "torch"):
        fixes = [_look(failed, source)]
        if is_a(value, list, tuple) and node.attr in ("to", "cuda", "cpu", "float", "detach"):
            fixes.insert(0, f"[part.{node.attr}(...) for part in {source}]")
        return Proof(
            f"{source} is {described(value)}, which has no {node.attr}.{_given_by(failed, source)}", tuple(fixes)
        )
    held = attributes_of(value)
    within = {name: part for name, part in held.items() if _has(part, node.attr)}
    inner = next((name for name in ("module", "_orig_mod", "model", "base_model") if name in within), None)
    if inner is not None:
        return Proof(
            f"{source} is {described(value)}, which has no {node.attr}; {source}.{inner} is "
            f"{described(within[inner])} and has one.{_given_by(failed, source)}",
            (f"{source}.{inner}.{node.attr}", "keep the model itself in a variable before it is wrapped"),
        )
    names = {*held, *(name for kind in type(value).__mro__ for name in kind.__dict__)}
    names = {name for name in names if is_a(name, str) and not name.startswith("__")}
    near = difflib.get_close_matches(node.attr, sorted(names), n=1, cutoff=0.6)
    if near:
        return Proof(
            f"{source} is {described(value)}, which has no {node.attr}; it has {near[0]}."
            f"{_given_by(failed, source)}",
            (f"{source}.{near[0]}, if that is meant", f"set {node.attr} where {source} is made, if it is another"),
        )
    return None


def _has(value: Any, name: str) -> bool:
    """Whether an object has an attribute, as far as that is known without asking it."""
    return name in attributes_of(value) or any(name in kind.__dict__ for kind in type(value).__mro__[:-1])


def _of_several(failed: Expression, source: str, value: Any, refused: Error | None = None) -> Proof | None:
    """Say which call returned several values of different kinds, where one variable took them all."""
    origin = failed.origin(source)
    if type(value) is not tuple or len(value) < 2 or origin is None or not isinstance(origin.value, ast.Call):
        return None
    call = shown(origin.value)
    count = len(value)
    asked = origin.value.func.attr if isinstance(origin.value.func, ast.Attribute) else ""
    names = {("reset", 2): "observation, info", ("step", 5): "observation, reward, terminated, truncated, info"}
    names |= {("step", 4): "observation, reward, done, info"}
    if refused is not None and (asked, count) not in names and not refused.is_of_a_tuple:
        return None
    taken = names.get((asked, count)) or ", ".join((source.rpartition(".")[2], *("_" * (count - 1))))
    return Proof(
        f"{source} is {described(value)}: {call}, on line {origin.lineno}, returns {count} values, and {source} "
        "holds them all.",
        (f"{taken} = {call}", f"{source}[0] where only the first is meant"),
        is_whole=True,
    )


def _several_values(error: Error, failed: Expression, node: ast.AST) -> Proof | None:
    """Recognise a tuple of different kinds that was passed where one tensor belongs."""
    for source, value in failed.known():
        of_kinds = is_a(value, tuple) and len({class_of(part) for part in value}) > 1
        if of_kinds and (proof := _of_several(failed, source, value, error)) is not None:
            return proof
    return None


_ABOUT_NONE = re.compile(r"\bNone(?:Type)?\b")


def _nothing(error: Error, failed: Expression, node: ast.AST) -> Proof | None:
    """Name the one value that is None."""
    if not _ABOUT_NONE.search(error.message):
        return None
    node = node.value if isinstance(node, ast.Attribute | ast.Subscript) else node
    inner = Expression(node, failed.path, failed.names)
    nothing = [source for source, value in inner.known() if value is None and source != "None"]
    if isinstance(node, ast.Call) and evaluate(node.func, failed.names) is None:
        nothing = [shown(node.func)]
    if len(nothing) != 1:
        return None
    source = nothing[0]
    owner, _, name = source.rpartition(".")
    held = evaluate(ast.parse(owner, mode="eval").body, failed.names) if owner else MISSING
    has = "" if held is MISSING else f", where {owner} is {described(held)}"
    fixes = [_look(failed, source)]
    if name == "loss":
        fixes.insert(
            0, f"pass labels to the call that returned {owner or source}: without them it computes no loss"
        )
    return Proof(
        f"{source} is None{has}.{_given_by(failed, source)}", (*fixes, f"if {source} is not None, before it")
    )


def _called(error: Error, failed: Expression, node: ast.Call) -> Proof | None:
    """Name what is called and cannot be."""
    called = evaluate(node.func, failed.names)
    if called is MISSING or "not callable" not in error.message:
        return None
    source = shown(node.func)
    if is_a(called, ModuleType):
        name = str(called.__dict__.get("__name__"))
        same = name.rpartition(".")[2] == source
        fix = f"from {name} import {source}" if same else f"{source}.NAME(...), a function that it holds"
        return Proof(f"{source} is {described(called)}, and is called.", (fix,))
    return Proof(
        f"{source} is {described(called)}, and is called.{_given_by(failed, source)}",
        (f"{source} without the brackets, or another name for the variable that hides a function",),
    )


def _operands(error: Error, failed: Expression, node: ast.AST) -> Proof | None:
    """Name the operands of an operation that Python has for none of their kinds."""
    parts = failed.known()
    if not any(is_a(value, str, list, tuple, dict) for _, value in parts):
        return None
    told = listed(f"{source} is {described(value)}" for source, value in parts)
    return Proof(f"{told}.{_given_by(failed, parts[0][0])}", (_look(failed, parts[0][0]),))


@dataclass(frozen=True)
class _Need:
    """What a call asks of each of its values.

    Attributes:
        words: of a message that says so.
        lacks: whether a value does not have it.
        asked: the sentence that follows the value; ``{call}`` is replaced by the call.
        fixes: where ``{source}`` is the value, and ``{look}`` where it is set.
    """

    words: re.Pattern[str]
    lacks: Callable[[Any], bool]
    asked: str
    fixes: tuple[str, ...]


def _unfit(need: _Need, error: Error, failed: Expression, node: ast.AST) -> Proof | None:
    """Name the one value that does not have what the message says that the call needs."""
    if not need.words.search(error.message):
        return None
    unfit = [(source, value) for source, value in failed.known() if need.lacks(value)]
    if len(unfit) != 1:
        return None
    source, value = unfit[0]
    asked = need.asked.format(call=failed.source)
    return Proof(
        f"{source} is {described(value)}, {asked}.{_given_by(failed, source)}",
        tuple(fix.format(source=source, look=_look(failed, source)) for fix in need.fixes),
    )


def _is_empty(value: Any) -> bool:
    if is_array(value):
        return 0 in tuple(value.shape)
    return is_a(value, list, tuple, dict, set) and length_of(value) == 0


def _is_written_number(value: Any) -> bool:
    if not is_a(value, str):
        return False
    try:
        float(value)
    except ValueError:
        return False
    return True


_WHOLE = _Need(
    re.compile(r"'float' object cannot be interpreted as an integer|slice indices must be integers"),
    lambda value: type(value) is float,
    "a float, and {call} needs a whole number",
    ("int({source}), or // in place of / where it is computed",),
)
_ELEMENT = _Need(
    re.compile(r"index out of range"),
    _is_empty,
    "and {call} asks for an element of it",
    (
        "{look}: a folder or pattern without a match, or a filter that keeps nothing",
        "if not {source}: raise an error that names the folder, so that the next run says so",
    ),
)
_NUMBER = _Need(
    re.compile(r"\b(?:str|sequence)\b"),
    _is_written_number,
    "a text and not a number",
    ("float({source}), or a number where it is set: YAML reads 1e-3 as a text",),
)
_SOME = _Need(
    re.compile(r"\bempty\b|zero-size|at least one|need at least|no (?:data|elements)\b"),
    _is_empty,
    "and {call} needs something in it",
    ("{look}: nothing was loaded, or a filter kept nothing", "skip the call if {source} is empty"),
)
_FINITE = _Need(
    re.compile(r"\bnan\b|infinit|\binf\b|invalid (?:numeric|values?)|not finite|non-?finite", re.IGNORECASE),
    lambda value: "NaN or infinite" in described(value),
    "and {call} takes finite numbers only",
    ("{look}: the first line after which it is not finite is the cause",),
)


def _unset(error: Error, failed: Expression, node: ast.Name) -> Proof | None:
    loops = [
        loop
        for loop in ast.walk(failed.scope)
        if isinstance(loop, ast.For) and any(_stores(part, node.id) for part in ast.walk(loop))
    ]
    outside = sum(_stores(part, node.id) for part in ast.walk(failed.scope))
    inside = sum(_stores(part, node.id) for loop in loops[:1] for part in ast.walk(loop))
    if len(loops) != 1 or outside != inside:
        return None
    over, value = shown(loops[0].iter), evaluate(loops[0].iter, failed.names)
    if value is MISSING:
        found = [(source, held) for source, held in Expression(loops[0].iter, (), failed.names).known()]
        over, value = next(((source, held) for source, held in found if length_of(held) == 0), (over, MISSING))
    if length_of(value) != 0:
        return None
    return Proof(
        f"{node.id} has no value: only the loop over {over} (line {loops[0].lineno}) sets it, and {over} is "
        f"{described(value)}.{_given_by(failed, over)}",
        (_look(failed, over), f"{node.id} = ... before the loop, if it may be empty"),
    )


def _stores(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _divided(error: Error, failed: Expression, node: ast.BinOp | ast.AugAssign) -> Proof | None:
    by = node.right if isinstance(node, ast.BinOp) else node.value
    if evaluate(by, failed.names) != 0:
        return None
    source = shown(by)
    parts = [(part, value) for part, value in Expression(by, (), failed.names).known() if part != source]
    counted = by.args[0] if isinstance(by, ast.Call) and by.args else None
    if counted is not None:
        parts = [(shown(counted), evaluate(counted, failed.names))]
    of = f": {parts[0][0]} is {described(parts[0][1])}" if parts else ""
    name = parts[0][0] if parts else source
    return Proof(
        f"{source} is 0{of}.{_given_by(failed, name)}",
        (f"{_look(failed, name)}: most often nothing was loaded or counted",),
    )


def _unpacked(error: Error, failed: Expression, node: ast.Tuple | ast.List) -> Proof | None:
    statement = failed.statement
    if not isinstance(statement, ast.Assign):
        return None
    value, wanted, source = evaluate(statement.value, failed.names), len(node.elts), shown(statement.value)
    if value is MISSING:
        return None
    keys, names = keys_of(value), shown(node).strip("()")
    by_name = ", ".join(f"{source}[{key!r}]" for key in (keys or ())[:wanted])
    fix = f"{names} = {by_name}" if keys else f"take it apart into {length_of(value)} names"
    return Proof(
        f"{source} is {described(value)}, and the line takes it apart into {wanted} names ({names})."
        f"{' Taken apart, a dict gives its keys.' if is_a(value, dict) else ''}{_given_by(failed, source)}",
        (fix, _look(failed, source)),
    )


_DEVICES = re.compile(r"\bdevices?\b")
_ON_SAME_DEVICE = (
    "bool", "float", "long", "half", "unsqueeze", "squeeze", "view", "reshape", "expand", "transpose",
)  # fmt: skip
"""Methods of tensors that leave their result on the same device, as an index and a comparison do."""


def _base(node: ast.expr) -> ast.expr:
    """Return what an expression takes its tensor from: `self.mask` of `self.mask[:, :T] == 0`."""
    while True:
        match node:
            case ast.Subscript():
                node = node.value
            case ast.Compare(comparators=[ast.Constant()]):
                node = node.left
            case ast.UnaryOp():
                node = node.operand
            case ast.Call(func=ast.Attribute(attr=name, value=inner)) if name in _ON_SAME_DEVICE:
                node = inner
            case _:
                return node


def _devices(error: Error, failed: Expression, node: ast.AST) -> Proof | None:
    """Name a tensor that does not move with its module, because it is neither a parameter nor a buffer."""
    if not _DEVICES.search(error.message):
        return None
    bases = (_base(operand) for operand in failed.operands())
    known = {shown(base): evaluate(base, failed.names) for base in bases}
    tensors = {source: value for source, value in known.items() if is_array(value) and hasattr(value, "device")}
    places = {source: str(value.device) for source, value in tensors.items()}
    for source, place in places.items():
        owner, _, name = source.rpartition(".")
        held = evaluate(ast.parse(owner, mode="eval").body, failed.names) if owner else MISSING
        inside = {} if held is MISSING else attributes_of(held)
        if "_buffers" not in inside or name not in object.__getattribute__(held, "__dict__"):
            continue
        apart = [f"{other} on {where}" for other, where in places.items() if where != place]
        if not apart and (len(places) > 1 or place != "cpu"):
            continue
        beside = f", and {listed(apart)}" if apart else ""
        on_cpu = " on cpu" if place == "cpu" else ""
        return Proof(
            f"{source} is {described(tensors[source])}{on_cpu}{beside}: it is a plain attribute of "
            f"{class_of(held)}, neither a parameter nor a buffer, so model.to(device) leaves it behind."
            f"{_given_by(failed, source)}",
            (
                f'{owner}.register_buffer("{name}", ..., persistent=False) in __init__',
                f"{source}.to(x.device) in forward, for a tensor that changes",
            ),
            rule="device-mismatch",
            is_whole=True,
        )
    return None


_Reader = tuple[
    tuple[type[BaseException], ...], type[ast.AST] | UnionType, Callable[[Error, Expression, Any], Proof | None]
]
"""What it reads: classes of exceptions, and of the expression that failed."""
_IN_OWN_FRAME: tuple[_Reader, ...] = (
    ((IndexError,), ast.Subscript, partial(_unfit, _ELEMENT)),
    ((IndexError,), ast.Subscript, _index),
    ((UnboundLocalError,), ast.Name, _unset),
    ((ZeroDivisionError,), ast.BinOp | ast.AugAssign, _divided),
    ((ValueError, TypeError), ast.Tuple | ast.List, _unpacked),
    ((TypeError, AttributeError, ValueError), ast.AST, _nothing),
    ((TypeError,), ast.AST, partial(_unfit, _WHOLE)),
)
"""What Python or compiled code refuses in the user's line; a library may take None and fail otherwise."""
_IN_ANY_FRAME: tuple[_Reader, ...] = (
    ((KeyError,), ast.Subscript, _key),
    ((AttributeError,), ast.Attribute, _attribute),
    ((RuntimeError,), ast.AST, _devices),
    ((TypeError, ValueError, RuntimeError), ast.AST, _several_values),
    ((TypeError,), ast.Call | ast.BinOp | ast.Compare | ast.AugAssign, partial(_unfit, _NUMBER)),
    ((TypeError,), ast.Call, _called),
    ((TypeError,), ast.BinOp | ast.Compare | ast.Subscript | ast.AugAssign, _operands),
    ((ValueError, RuntimeError, TypeError, IndexError), ast.AST, partial(_unfit, _SOME)),
    ((ValueError, RuntimeError), ast.AST, partial(_unfit, _FINITE)),
)
