"""Evaluates and describes what an expression held, without running any code of the user's.

Read are local and global variables, the `__dict__` of instances, the items of Python's own containers, and shape,
dtype and device of arrays. No property, no `__getattr__`, no `__repr__` and no `__len__` of an unknown class runs.
"""

from __future__ import annotations

import ast
import contextlib
import operator
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

MISSING: Final[Any] = object()
"""Stands for what cannot be known without running code."""

MOST_KEYS = 8  # of a dict or a table
MOST_PARTS = 4  # of a tuple or a list, described one by one
MOST_CHARACTERS = 60  # of a string
MOST_READ = 1_000_000  # elements of an array whose range is read

_LIBRARIES = frozenset({"torch", "numpy", "tensorflow", "keras", "jax", "jaxlib", "pandas", "PIL"})
"""Packages whose own classes may be asked for their shape: that runs their code, not the user's."""
_NUMBERS = (bool, int, float)
_ASKED = ("shape", "dtype", "device", "ndim", "requires_grad", "size", "mode", "columns")
_METHODS: Mapping[str, Callable[..., Any]] = {
    "size": lambda array, axis=None: array.shape if axis is None else array.shape[axis],
    "dim": lambda array: len(array.shape),
}
"""Methods of tensors that only tell a shape."""
_OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


def is_a(value: Any, *kinds: type) -> bool:
    """Whether a value is of one of these classes. `isinstance` may ask the value itself for its class."""
    return issubclass(type(value), kinds)


def class_of(value: Any) -> str:
    """Name the class of a value."""
    return type(value).__name__


def is_of_library(value: Any) -> bool:
    """Whether a value is an object of a library's own class, of which the shape may be asked."""
    return str(type(value).__module__).partition(".")[0] in _LIBRARIES


def is_array(value: Any) -> bool:
    """Whether a value is a tensor or an array of a known library."""
    return is_of_library(value) and not is_a(value, type) and hasattr(value, "shape") and hasattr(value, "dtype")


def attributes_of(value: Any) -> Mapping[str, Any]:
    """Return what an instance holds under its own names; of a module of a network its parts, too."""
    try:
        held: dict[str, Any] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    parts = [held.get(kind) for kind in ("_parameters", "_buffers", "_modules")]
    if not any(isinstance(part, dict) for part in parts):
        return held
    merged = {name: part for kind in parts if isinstance(kind, dict) for name, part in kind.items()}
    return {**merged, **held}


def attribute_of(value: Any, name: str) -> Any:
    """Return an attribute that can be read without running code; else `MISSING`."""
    if is_of_library(value) and name in _ASKED and not is_a(value, type):
        return getattr(value, name, MISSING)
    if name == "grad" and is_array(value):
        return value.grad if getattr(value, "is_leaf", False) else MISSING
    of_class = next((kind.__dict__[name] for kind in type(value).__mro__ if name in kind.__dict__), MISSING)
    if isinstance(of_class, types.MemberDescriptorType):  # of __slots__
        return of_class.__get__(value, type(value))
    if isinstance(of_class, property) or hasattr(type(of_class), "__set__"):
        return MISSING
    held = attributes_of(value)
    if name in held:
        return held[name]
    return of_class if of_class is None or type(of_class) in (*_NUMBERS, str, tuple, list, dict) else MISSING


def keys_of(value: Any) -> list[Any] | None:
    """Return the keys by which a dict, a table or a batch can be asked; None of anything else."""
    if is_a(value, dict):
        return list(dict.keys(value))
    if is_of_library(value) and class_of(value) == "DataFrame":
        return list(value.columns)
    held = attributes_of(value)
    within = held.get("data") if "Mapping" in {kind.__name__ for kind in type(value).__mro__} else None
    if isinstance(within, dict):  # a UserDict, as transformers' BatchEncoding is
        return list(dict.keys(within))
    return None


def length_of(value: Any) -> int | None:
    """Return the length of a container of Python's own, or of an array; None of anything else."""
    kinds: tuple[Any, ...] = (list, tuple, dict, str, bytes, set, frozenset)
    for kind in kinds:
        if is_a(value, kind):
            return int(kind.__len__(value))
    if is_array(value):
        return int(value.shape[0]) if len(value.shape) else None
    return None


def item_of(value: Any, key: Any) -> Any:
    """Return an item of a container of Python's own; else `MISSING`."""
    plain = key is None or type(key) in (*_NUMBERS, str)
    if is_a(value, dict) and plain:
        return dict.get(value, key, MISSING)
    kinds: tuple[Any, ...] = (list, tuple, str)
    for kind in kinds:
        if is_a(value, kind) and type(key) is int:
            length = int(kind.__len__(value))
            return kind.__getitem__(value, key) if -length <= key < length else MISSING
    return MISSING


def evaluate(node: ast.AST | None, names: Mapping[str, Any]) -> Any:
    """Return what an expression was, as far as that is known without running code; else `MISSING`."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return names.get(node.id, MISSING)
        case ast.Attribute():
            value = evaluate(node.value, names)
            return MISSING if value is MISSING else attribute_of(value, node.attr)
        case ast.Subscript():
            value, key = evaluate(node.value, names), evaluate(node.slice, names)
            return MISSING if value is MISSING or key is MISSING else item_of(value, key)
        case ast.UnaryOp(op=ast.USub()):
            value = evaluate(node.operand, names)
            return -value if type(value) in _NUMBERS else MISSING
        case ast.Tuple() | ast.List():
            parts = [evaluate(part, names) for part in node.elts]
            known = all(part is not MISSING for part in parts)
            return (tuple(parts) if isinstance(node, ast.Tuple) else parts) if known else MISSING
        case ast.BinOp() if type(node.op) in _OPERATORS:
            one, other = evaluate(node.left, names), evaluate(node.right, names)
            if type(one) not in _NUMBERS or type(other) not in _NUMBERS:
                return MISSING
            by_zero = other == 0 and isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod)
            return MISSING if by_zero else _OPERATORS[type(node.op)](one, other)
        case ast.Call():
            return _returned(node, names)
    return MISSING


def _returned(call: ast.Call, names: Mapping[str, Any]) -> Any:
    given = [evaluate(part, names) for part in call.args]
    if call.keywords or any(part is MISSING for part in given):
        return MISSING
    if isinstance(call.func, ast.Name) and call.func.id == "len" and len(given) == 1:
        length = length_of(given[0])
        return MISSING if length is None else length
    if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
        value = evaluate(call.func.value, names)
        if value is not MISSING and is_array(value) and str(type(value).__module__).startswith("torch"):
            try:
                return _METHODS[call.func.attr](value, *given)
            except Exception:  # an axis that the tensor does not have
                return MISSING
    return MISSING


def described(value: Any, parts: bool = True) -> str:
    """Describe a value: `an empty list`, `a tensor of shape (3, 4), float32, on cuda:0`.

    Args:
        value: anything.
        parts: whether the parts of a container are described, too.
    """
    try:
        return _described(value, parts)
    except Exception:  # a tensor without memory, or a class that hides what it is
        return _with_article(class_of(value))


def _described(value: Any, parts: bool) -> str:
    if value is None or type(value) in _NUMBERS or value is Ellipsis:
        return repr(value)
    if is_a(value, str):
        text = str.__str__(value)
        return f"the string {text[:MOST_CHARACTERS]!r}" + ("..." if len(text) > MOST_CHARACTERS else "")
    if is_a(value, types.ModuleType):
        return f"the module {value.__dict__.get('__name__')}"
    if is_of_library(value) and class_of(value) == "Size":
        return str(tuple(value))
    if is_array(value):
        return _array(value)
    if is_of_library(value) and hasattr(value, "mode") and hasattr(value, "getbands"):
        return f"an image of mode {value.mode}, {value.size[0]} x {value.size[1]}"
    if (keys := keys_of(value)) is not None:
        return _keyed(value, keys)
    if is_a(value, list, tuple, set, frozenset):
        return _sequence(value, parts)
    return _with_article(class_of(value))


def _with_article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _keyed(value: Any, keys: Sequence[Any]) -> str:
    what = class_of(value)
    if not keys:
        return f"an empty {what}"
    shown = [
        repr(key) if type(key) in (*_NUMBERS, str) else _with_article(class_of(key)) for key in keys[:MOST_KEYS]
    ]
    more = f" and {len(keys) - MOST_KEYS} more" if len(keys) > MOST_KEYS else ""
    called = "columns" if what == "DataFrame" else "keys" if len(keys) > 1 else "key"
    return f"{_with_article(what)} with the {called} {', '.join(shown)}{more}"


def _sequence(value: Any, parts: bool) -> str:
    kinds: tuple[Any, ...] = (list, tuple, set, frozenset)
    kind = next(kind for kind in kinds if is_a(value, kind))
    length, what = length_of(value) or 0, class_of(value)
    if not length:
        return f"an empty {what}"
    first = list(islice(kind.__iter__(value), MOST_PARTS + 1))
    if not parts:
        return f"{_with_article(what)} of {length}"
    shown = [described(part, parts=False) for part in first]
    if length > MOST_PARTS:
        return f"{_with_article(what)} of {length}, which begins with {shown[0]}"
    return f"{_with_article(what)} of {length} ({'; '.join(shown)})"


def _array(value: Any) -> str:
    shape = tuple(None if size is None else int(size) for size in value.shape)
    of_torch = "torch" in str(type(value).__module__)
    what = {"ndarray": "array", "Series": "Series"}.get(class_of(value)) or ("tensor" if shape or of_torch else "")
    dtype = str(value.dtype).removeprefix("torch.").removeprefix("<dtype: '").removesuffix("'>")
    if not what:  # a number of NumPy
        return f"the {dtype} {value!s}"
    device = str(getattr(value, "device", "cpu")) if of_torch else "cpu"
    told = f"{_with_article(dtype)} {what} of shape {shape}"
    if device != "cpu":
        return f"{told} on {device}"
    with contextlib.suppress(Exception):  # a sparse tensor, or one without memory
        told += _content(value, of_torch)
    return told


def _content(value: Any, of_torch: bool) -> str:
    """Tell the range of integers, and how much is not finite, of an array in the host's memory."""
    import numpy as np

    array = value.detach().numpy() if of_torch and str(value.dtype) != "torch.bfloat16" else value
    if not isinstance(array, np.ndarray) or array.size == 0 or array.size > MOST_READ:
        return ""
    if array.dtype.kind in "iu":
        low, high = int(array.min()), int(array.max())
        return f" with values of {low}" if low == high else f" with values from {low} to {high}"
    if array.dtype.kind == "f" and (bad := int(array.size - np.isfinite(array).sum())):
        return f" with {bad} of {array.size} values NaN or infinite"
    return ""


def is_telling(value: Any) -> bool:
    """Whether a value's description says more than the name of its class."""
    if value is MISSING or is_a(value, types.ModuleType, types.FunctionType, type) or value is Ellipsis:
        return False
    known = value is None or is_a(value, *_NUMBERS, str, list, tuple, set, frozenset)
    return known or is_array(value) or keys_of(value) is not None or hasattr(type(value), "getbands")


def leaves(node: ast.AST, names: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the parts of an expression whose value is known, by their source, from left to right.

    The parts of an attribute or item are left out where the whole is known.
    """
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.Lambda | ast.FunctionDef | ast.ClassDef | ast.Constant | ast.JoinedStr):
        return
    if isinstance(node, ast.expr) and not isinstance(node, ast.Tuple | ast.List):
        value = evaluate(node, names)
        if is_telling(value):
            yield ast.unparse(node), value
            return
    if isinstance(node, ast.Compare):
        children = (node.left, *node.comparators)
    for child in children:
        yield from leaves(child, names)
