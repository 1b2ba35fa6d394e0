"""Reads, from the syntax tree of a cell, which names it reads and binds, in the order in which Python does."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from diagnostics.collectors.source.scopes import FUNCTIONS, dotted
from diagnostics.facts.notebook import ValueKind

from .events import Binding, CellNames, Deletion, FunctionNames, Use

# Decorators under which a call still runs the body, with the same globals.
RUNS_BODY = frozenset(
    {"no_grad", "inference_mode", "enable_grad", "function", "jit", "njit", "lru_cache", "cache"}
)
SUPPRESS = frozenset({"suppress", "raises", "assertRaises", "warns"})  # contexts whose body may end early
# What makes names in a way that the source does not show.
DYNAMIC = frozenset({"exec", "execfile", "load_session", "load_module", "run_cell"})
DYNAMIC |= {"run_line_magic", "run_cell_magic", "magic"}
NAMESPACES = frozenset({"globals", "locals", "vars"})  # the same, where they are called without arguments

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
    str: "a text",
    bytes: "bytes",
    type(None): "None",
}


def names_of(tree: ast.Module) -> CellNames:
    """Return what a cell does to names."""
    reader = _Reader()
    reader.block(tree.body)
    reader.found.stops = not reader.certain
    return reader.found


class _ClassScope(set[str]):
    """Names in the body of a class, which its methods do not see."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class _Reader(ast.NodeVisitor):
    """Visits statements in the order in which they run."""

    def __init__(self) -> None:
        self.found = CellNames()
        self.certain = True
        self._locals: list[frozenset[str]] = []  # of the functions around
        self._hidden: list[set[str]] = []  # of comprehensions and classes around
        self._function: FunctionNames | None = None
        self._loop_end = 0

    def block(self, statements: Iterable[ast.stmt]) -> None:
        """Visit statements; what follows one that may leave the block is not certain."""
        for statement in statements:
            self.visit(statement)
            if raises_or_leaves(statement) or (self._function is not None and leaves(statement)):
                self.certain = False

    def _perhaps(self, statements: Iterable[ast.stmt], certain: bool = False) -> None:
        before, self.certain = self.certain, self.certain and certain
        self.block(statements)
        self.certain = before

    # What is read and bound.

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._use(node, called=False)
        elif isinstance(node.ctx, ast.Store):
            self._bind(node.id, node.lineno, "other")
        elif not self._is_local(node.id) and self._function is None and self.certain:
            self.found.events.append(Deletion(node.id, node.lineno))

    def _use(self, node: ast.Name, *, called: bool) -> None:
        if self._is_local(node.id):
            return
        use = Use(node.id, node.lineno, self.certain, called)
        if self._function is None:
            self.found.events.append(use)
        else:
            self._function.uses.append(use)

    def _is_local(self, name: str) -> bool:
        return any(name in scope for scope in (*self._hidden, *self._locals))

    def _bind(self, name: str, line: int, kind: ValueKind, value: ast.expr | None = None) -> None:
        if self._hidden:
            self._hidden[-1].add(name)
        elif self._function is not None:
            if not self._is_local(name):  # declared global
                self._function.binds.add(name)
        else:
            words = value_words(value) if value is not None else ""
            text = ast.dump(value) if value is not None else ""
            until = self._loop_end if kind == "loop variable" else 0
            self.found.events.append(Binding(name, line, self.certain, kind, words, text, until))

    def _bind_target(self, target: ast.expr, kind: ValueKind, value: ast.expr | None = None) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, target.lineno, kind, value)
        elif isinstance(target, ast.Tuple | ast.List):
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            if len(parts) != len(target.elts) or any(isinstance(part, ast.Starred) for part in target.elts):
                parts = []
            for number, part in enumerate(target.elts):
                given = parts[number] if parts else None
                self._bind_target(part, kind_of(given) if given is not None else kind, given)
        elif isinstance(target, ast.Starred):
            self._bind_target(target.value, kind)
        else:
            self.visit(target)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name):
            self._use(node.func, called=True)
        else:
            self.visit(node.func)
        name = dotted(node.func)
        if name.rpartition(".")[2] in DYNAMIC or (name in NAMESPACES and not node.args):
            self.found.dynamic = True
        for argument in (*node.args, *node.keywords):
            self.visit(argument)

    def visit_Compare(self, node: ast.Compare) -> None:
        self.visit(node.left)
        for operation, other in zip(node.ops, node.comparators, strict=True):
            called = dotted(other.func) if isinstance(other, ast.Call) else ""
            if not (isinstance(operation, ast.In | ast.NotIn) and called in NAMESPACES):  # "x" in globals()
                self.visit(other)

    # Statements that bind.

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._bind_target(target, kind_of(node.value), node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self._bind_target(node.target, kind_of(node.value), node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            self.visit(node.target)
        elif not self._is_local(node.target.id):
            self._use(ast.Name(node.target.id, ast.Load(), lineno=node.target.lineno), called=False)
            if self._function is not None:
                self._function.binds.add(node.target.id)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        hidden, self._hidden = self._hidden, []  # it binds outside of a comprehension
        self._bind(node.target.id, node.lineno, kind_of(node.value), node.value)
        self._hidden = hidden

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._bind(alias.asname or alias.name.partition(".")[0], node.lineno, "import")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name == "*":
                self.found.star = True
            else:
                self._bind(alias.asname or alias.name, node.lineno, "import")

    # Blocks.

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._loop_end = node.end_lineno or node.lineno
        self._bind_target(node.target, "loop variable")
        self._perhaps(node.body, certain=True)  # a loop over nothing is rare, and no reason to rely on it
        self._perhaps(node.orelse)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
        self.visit_For(node)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._perhaps(node.body, certain=isinstance(node.test, ast.Constant) and bool(node.test.value))
        self._perhaps(node.orelse)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._perhaps(node.body, certain=ast.unparse(node.test) in ("True", "1", "__name__ == '__main__'"))
        self._perhaps(node.orelse)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        self._perhaps([ast.Expr(node.body), ast.Expr(node.orelse)])

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.visit(node.values[0])
        self._perhaps([ast.Expr(value) for value in node.values[1:]])

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        self._perhaps(node.body, certain=not node.handlers)
        for handler in node.handlers:
            if handler.type is not None:
                self._perhaps([ast.Expr(handler.type)])
            if handler.name:
                self._bind(handler.name, handler.lineno, "other")
            self._perhaps(handler.body)
        self._perhaps(node.orelse)
        self._perhaps(node.finalbody, certain=not node.handlers)

    def visit_TryStar(self, node: ast.TryStar) -> None:
        self.visit_Try(node)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        surely = True
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self._bind_target(item.optional_vars, "other")
            called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
            surely = surely and dotted(called).rpartition(".")[2] not in SUPPRESS
        self._perhaps(node.body, certain=surely)

    def visit_AsyncWith(self, node: ast.AsyncWith) -> None:
        self.visit_With(node)

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        for case in node.cases:
            for part in ast.walk(case.pattern):
                for name in (getattr(part, "name", None), getattr(part, "rest", None)):
                    if isinstance(name, str):
                        self._bind(name, node.lineno, "other")
            self._perhaps(case.body)

    # Scopes.

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        first, *rest = node.generators
        self.visit(first.iter)
        before = self.certain
        self.certain = (
            before and not isinstance(node, ast.GeneratorExp) and not any(g.ifs for g in node.generators)
        )
        self._hidden.append(set())
        self._bind_target(first.target, "loop variable")
        for generator in rest:
            self.visit(generator.iter)
            self._bind_target(generator.target, "loop variable")
        for condition in (condition for generator in node.generators for condition in generator.ifs):
            self.visit(condition)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(part)
        self._hidden.pop()
        self.certain = before

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._defaults(node.args)
        self._body(FunctionNames("<lambda>", node.lineno, False, True), node.args, [ast.Expr(node.body)])

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self._defaults(node.args)
        self._bind(node.name, node.lineno, "function")
        decorated = {
            dotted(d.func if isinstance(d, ast.Call) else d).rpartition(".")[2] for d in node.decorator_list
        }
        runs = isinstance(node, ast.FunctionDef) and decorated <= RUNS_BODY and not yields(node)
        within = bool(self._hidden) or self._function is not None
        name = ".".join([*(s.name for s in self._hidden if isinstance(s, _ClassScope)), node.name])
        self._body(FunctionNames(name, node.lineno, runs and not within, within), node.args, node.body)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self._bind(node.name, node.lineno, "class")
        self._hidden.append(_ClassScope(node.name))
        self._perhaps(node.body, certain=True)
        self._hidden.pop()

    def _defaults(self, arguments: ast.arguments) -> None:
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.visit(default)

    def _body(self, function: FunctionNames, arguments: ast.arguments, body: list[ast.stmt]) -> None:
        """Read a function's body; one within another belongs to that, and is not certain to run."""
        outer, before, hidden = self._function, self.certain, self._hidden
        if outer is None:
            self._function, self.certain = function, function.runs
            self.found.functions.append(function)
        else:
            self.certain = False
        taken = {argument.arg for argument in arguments_of(arguments)}
        bound, declared = set[str](), set[str]()
        for node in own_nodes_of(body):
            bound |= set(bound_by(node))
            declared |= set(node.names) if isinstance(node, ast.Global) else set()
        self._locals.append(frozenset((taken | bound) - declared))
        self._hidden = [names for names in hidden if not isinstance(names, _ClassScope)]
        self.block(body)
        self._locals.pop()
        self._function, self.certain, self._hidden = outer, before, hidden


def arguments_of(arguments: ast.arguments) -> Iterator[ast.arg]:
    """Yield all arguments of a function."""
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None)


def own_nodes_of(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions and classes within, whose names are their own."""
    for node in body:
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
                yield from (part for part in ast.walk(node) if isinstance(part, ast.NamedExpr))
            else:
                yield from own_nodes_of(ast.iter_child_nodes(node))


def bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node itself binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.NamedExpr(target=ast.Name(id=name)):
            yield name
        case ast.Import() | ast.ImportFrom():
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Nonlocal():
            yield from node.names


def yields(function: ast.AST) -> bool:
    """Whether a function is a generator: a call runs nothing of its body."""
    body = getattr(function, "body", [])
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes_of(body))


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
            return "a text"
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
