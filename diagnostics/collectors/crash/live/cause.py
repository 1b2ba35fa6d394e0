"""Says what the values in a failed expression prove: which one is empty, None, missing, or of another kind.

Each reader knows one way in which Python, or a library's compiled code, refuses an expression. It names the value
that decides, where the source gave it, and what to change.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any

from diagnostics.collectors.tracebacks.unknown_errors import compiled, tables
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

FILE = Path(__file__).with_suffix(".toml")
RULE = "mismatched-call"
MOST_READ = 400  # characters of a message


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
    proofs = (
        reader(message[:MOST_READ], failed, failed.node)
        for kinds, nodes, reader in (_IN_ANY_FRAME if in_library else (*_IN_OWN_FRAME, *_IN_ANY_FRAME))
        if issubclass(kind, kinds) and isinstance(failed.node, nodes)
    )
    return next((proof for proof in proofs if proof is not None), None)


def _proof(kind: str, failed: Expression, source: str, value: Any = None, /, **held: Any) -> Proof:
    """Fill the sentences of a kind of proof, in which one value decides."""
    said = tables(FILE)[kind]
    held = {"source": source, "value": described(value), **held}
    held |= {"given": _given_by(failed, source), "look": _look(failed, source)}
    fixes = tuple(fix.format_map(held) for fix in said["fix"])
    return Proof(said["cause"].format_map(held), fixes, said.get("rule", RULE), said.get("whole", False))


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


def _index(message: str, failed: Expression, node: ast.Subscript) -> Proof | None:
    held, key = evaluate(node.value, failed.names), evaluate(node.slice, failed.names)
    length, source = length_of(held), shown(node.value)
    if not length or type(key) is not int or is_array(held):
        return None
    kind = "index" if isinstance(node.slice, ast.Constant) else "computed index"
    said = {"count": count_of(length, "element"), "last": length - 1, "index": shown(node.slice), "key": key}
    return _proof(kind, failed, source, **said, value=described(held, parts=False))


def _key(message: str, failed: Expression, node: ast.Subscript) -> Proof | None:
    held, key = evaluate(node.value, failed.names), evaluate(node.slice, failed.names)
    keys = keys_of(held)
    if keys is None or key is MISSING or not is_a(key, str, int) or key in keys or str(key) not in message:
        return None
    source, texts = shown(node.value), [str(name) for name in keys if is_a(name, str, int)]
    near = [name for name in texts if name.lower().strip() == str(key).lower().strip()]
    near = near or difflib.get_close_matches(str(key), texts, n=1, cutoff=0.8)
    hint = f" The closest is {near[0]!r}." if near else ""
    asked = f"{key!r}" if isinstance(node.slice, ast.Constant) else f"{key!r} ({shown(node.slice)})"
    instead = f"{source}[{near[0]!r}]" if near else f"ask {source} for a key that it has"
    return _proof("key", failed, source, held, asked=asked, hint=hint, instead=instead)


def _attribute(message: str, failed: Expression, node: ast.Attribute) -> Proof | None:
    value, source = evaluate(node.value, failed.names), shown(node.value)
    if value is MISSING or value is None or is_a(value, type) or node.attr not in message:
        return None
    if (several := _of_several(failed, source, value)) is not None:
        return several
    plain = is_a(value, list, tuple, dict, str, int, float) or is_array(value)
    if plain and type(value).__module__ in ("builtins", "numpy", "torch"):
        of_parts = is_a(value, list, tuple) and node.attr in ("to", "cuda", "cpu", "float", "detach")
        kind = "attribute of parts" if of_parts else "attribute"
        return _proof(kind, failed, source, value, name=node.attr)
    held = attributes_of(value)
    within = {name: part for name, part in held.items() if _has(part, node.attr)}
    inner = next((name for name in ("module", "_orig_mod", "model", "base_model") if name in within), None)
    if inner is None:
        return None
    told = described(within[inner])
    return _proof("attribute within", failed, source, value, name=node.attr, inner=inner, within=told)


def _has(value: Any, name: str) -> bool:
    """Whether an object has an attribute, as far as that is known without asking it."""
    return name in attributes_of(value) or any(name in kind.__dict__ for kind in type(value).__mro__[:-1])


def _of_several(failed: Expression, source: str, value: Any, sure: bool = True) -> Proof | None:
    """Say which call returned several values of different kinds, where one variable took them all."""
    origin = failed.origin(source)
    if type(value) is not tuple or len(value) < 2 or origin is None or not isinstance(origin.value, ast.Call):
        return None
    call = shown(origin.value)
    count = len(value)
    asked = origin.value.func.attr if isinstance(origin.value.func, ast.Attribute) else ""
    names = {("reset", 2): "observation, info", ("step", 5): "observation, reward, terminated, truncated, info"}
    names |= {("step", 4): "observation, reward, done, info"}
    if not sure and (asked, count) not in names:
        return None
    taken = names.get((asked, count)) or ", ".join((source.rpartition(".")[2], *("_" * (count - 1))))
    line = origin.lineno
    return _proof("several values", failed, source, value, call=call, line=line, count=count, taken=taken)


def _several_values(message: str, failed: Expression, node: ast.AST, own: bool = False) -> Proof | None:
    """Recognise a tuple of different kinds that was passed where one tensor belongs.

    Compiled code refused it, in the user's own line, or a library that says so, as others take a tuple.
    """
    for source, value in failed.known():
        of_kinds = is_a(value, tuple) and len({class_of(part) for part in value}) > 1
        if of_kinds and (proof := _of_several(failed, source, value, own or "tuple" in message)) is not None:
            return proof
    return None


def _nothing(message: str, failed: Expression, node: ast.AST) -> Proof | None:
    """Name the one value that is None."""
    if not compiled(tables(FILE)["None"]["words"]).search(message):
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
    kind = "no loss" if name == "loss" else "None"
    return _proof(kind, failed, source, has=has, owner=owner or source)


def _called(message: str, failed: Expression, node: ast.Call) -> Proof | None:
    """Name what is called and cannot be."""
    called = evaluate(node.func, failed.names)
    if called is MISSING or "not callable" not in message:
        return None
    source = shown(node.func)
    if is_a(called, ModuleType):
        name = str(called.__dict__.get("__name__"))
        same = name.rpartition(".")[2] == source
        instead = f"from {name} import {source}" if same else f"{source}.NAME(...), a function that it holds"
        return _proof("module", failed, source, called, instead=instead)
    return _proof("called", failed, source, called)


def _operands(message: str, failed: Expression, node: ast.AST) -> Proof | None:
    """Name the operands of an operation that Python has for none of their kinds."""
    parts = failed.known()
    if not any(is_a(value, str, list, tuple, dict) for _, value in parts):
        return None
    told = listed(f"{source} is {described(value)}" for source, value in parts)
    return _proof("operands", failed, parts[0][0], told=told)


def _unfit(kind: str, message: str, failed: Expression, node: ast.AST) -> Proof | None:
    """Name the one value that lacks what the message says that the call needs."""
    if not compiled(tables(FILE)[kind]["words"]).search(message):
        return None
    unfit = [(source, value) for source, value in failed.known() if _LACKS[kind](value)]
    return _proof(kind, failed, *unfit[0], call=failed.source) if len(unfit) == 1 else None


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


_LACKS: dict[str, Callable[[Any], bool]] = {
    "whole number": lambda value: type(value) is float,
    "element": _is_empty,
    "number": _is_written_number,
    "something": _is_empty,
    "finite numbers": lambda value: "NaN or infinite" in described(value),
}
"""Whether a value lacks what a call needs."""


def _unset(message: str, failed: Expression, node: ast.Name) -> Proof | None:
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
    return _proof("unset", failed, over, value, name=node.id, line=loops[0].lineno)


def _stores(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _divided(message: str, failed: Expression, node: ast.BinOp | ast.AugAssign) -> Proof | None:
    by = node.right if isinstance(node, ast.BinOp) else node.value
    if evaluate(by, failed.names) != 0:
        return None
    counted = by.args[0] if isinstance(by, ast.Call) and by.args else None
    of = "" if counted is None else f": {shown(counted)} is {described(evaluate(counted, failed.names))}"
    return _proof("divided", failed, shown(by if counted is None else counted), by=shown(by), of=of)


def _unpacked(message: str, failed: Expression, node: ast.Tuple | ast.List) -> Proof | None:
    statement = failed.statement
    if not isinstance(statement, ast.Assign):
        return None
    value, wanted, source = evaluate(statement.value, failed.names), len(node.elts), shown(statement.value)
    if value is MISSING:
        return None
    keys, names = keys_of(value), shown(node).strip("()")
    by_name = ", ".join(f"{source}[{key!r}]" for key in (keys or ())[:wanted])
    instead = f"{names} = {by_name}" if keys else f"take it apart into {length_of(value)} names"
    of_dict = " Taken apart, a dict gives its keys." if is_a(value, dict) else ""
    return _proof("unpacked", failed, source, value, wanted=wanted, names=names, keys=of_dict, instead=instead)


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
            case ast.Call(func=ast.Attribute(attr=name, value=inner)) if name in tables(FILE)["on_same_device"]:
                node = inner
            case _:
                return node


def _devices(message: str, failed: Expression, node: ast.AST) -> Proof | None:
    """Name a tensor that does not move with its module, because it is neither a parameter nor a buffer."""
    if not compiled(tables(FILE)["devices"]["words"]).search(message):
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
        where = f"{' on cpu' if place == 'cpu' else ''}{beside}"
        kind, value = class_of(held), tensors[source]
        return _proof("devices", failed, source, value, places=where, kind=kind, owner=owner, name=name)
    return None


_Reader = tuple[tuple[type[BaseException], ...], type[ast.AST] | UnionType, Callable[..., Proof | None]]
"""What it reads: classes of exceptions, and of the expression that failed."""
_IN_OWN_FRAME: tuple[_Reader, ...] = (
    ((IndexError,), ast.Subscript, partial(_unfit, "element")),
    ((IndexError,), ast.Subscript, _index),
    ((UnboundLocalError,), ast.Name, _unset),
    ((ZeroDivisionError,), ast.BinOp | ast.AugAssign, _divided),
    ((ValueError, TypeError), ast.Tuple | ast.List, _unpacked),
    ((TypeError, AttributeError, ValueError), ast.AST, _nothing),
    ((TypeError,), ast.AST, partial(_unfit, "whole number")),
    ((TypeError, ValueError, RuntimeError), ast.AST, partial(_several_values, own=True)),
)
"""What Python or compiled code refuses in the user's line; a library may take None and fail otherwise."""
_IN_ANY_FRAME: tuple[_Reader, ...] = (
    ((KeyError,), ast.Subscript, _key),
    ((AttributeError,), ast.Attribute, _attribute),
    ((RuntimeError,), ast.AST, _devices),
    ((TypeError, ValueError, RuntimeError), ast.AST, _several_values),
    ((TypeError,), ast.Call | ast.BinOp | ast.Compare | ast.AugAssign, partial(_unfit, "number")),
    ((TypeError,), ast.Call, _called),
    ((TypeError,), ast.BinOp | ast.Compare | ast.Subscript | ast.AugAssign, _operands),
    ((ValueError, RuntimeError, TypeError, IndexError), ast.AST, partial(_unfit, "something")),
    ((ValueError, RuntimeError), ast.AST, partial(_unfit, "finite numbers")),
)
