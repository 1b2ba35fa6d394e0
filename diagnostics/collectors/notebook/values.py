"""What an expression makes, and whether a statement leaves its block, as far as the source tells."""

from __future__ import annotations

import ast

from diagnostics.collectors.source.scopes import FUNCTIONS, dotted
from diagnostics.facts.notebook import ValueKind

# Made by a call, and yet set once and never changed: a device, a path, a seed's generator.
CONSTANTS = frozenset({"device", "Path", "PurePath", "join", "getenv", "get", "namedtuple", "is_available"})
CONSTANTS |= {
    "device_count",
    "int",
    "float",
    "str",
    "bool",
    "len",
    "TypeVar",
    "getLogger",
    "frozenset",
    "cpu_count",
}
LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
ENDS = frozenset({"exit", "quit", "sys.exit", "os._exit"})
_WORDS: dict[type, str] = {
    bool: "a bool",
    int: "a number",
    float: "a number",
    complex: "a number",
    str: "a string",
    bytes: "bytes",
    type(None): "None",
}


def kind_of(value: ast.expr) -> ValueKind:
    """Return what an assigned value is."""
    if value_words(value):
        return "literal"
    if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in CONSTANTS:
        return "constant"
    if isinstance(value, ast.IfExp):
        kinds = {kind_of(value.body), kind_of(value.orelse)}
        return "constant" if kinds <= {"constant", "literal"} else "other"
    if isinstance(value, ast.Lambda):
        return "function"
    return "other"


def value_words(value: ast.expr) -> str:
    """Return what a value is that cannot be called: ``a number``, ``a list``; empty where that is not certain."""
    match value:
        case ast.Constant(value=constant):
            return _WORDS.get(type(constant), "")
        case ast.JoinedStr():
            return "a string"
        case ast.List() | ast.ListComp():
            return "a list"
        case ast.Dict() | ast.DictComp():
            return "a dict"
        case ast.Tuple():
            return "a tuple"
        case ast.Set() | ast.SetComp():
            return "a set"
        case ast.UnaryOp(op=ast.Not()):
            return "a bool"
        case ast.UnaryOp(operand=operand):
            return value_words(operand)
        case ast.BinOp(left=left, right=right):
            one, other = value_words(left), value_words(right)
            return one if one == other else ""
    return ""


def leaves(statement: ast.stmt) -> bool:
    """Whether a statement may leave the function or the loop around it."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return False
    return any(isinstance(part, LEAVES) for part in ast.walk(statement))


def raises_or_leaves(statement: ast.stmt) -> bool:
    """Whether nothing after a statement runs: it raises, asserts what is false, or ends the program."""
    if isinstance(statement, ast.Assert):
        return isinstance(statement.test, ast.Constant) and not statement.test.value
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return dotted(statement.value.func) in ENDS
    return isinstance(statement, LEAVES)
