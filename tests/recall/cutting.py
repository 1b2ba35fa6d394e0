"""End the training of a script early, as somebody does who tries it out: after one epoch, or after a few steps.

Loops that train get a `break`, Keras' `fit` a callback that stops it, a Trainer fewer steps. What comes after the
training runs as before, so that the script also evaluates what it has not trained to the end.
"""

from __future__ import annotations

import ast

EPOCH = "epoch"
CUTS = ("16", "30", "64", EPOCH)
TRAINS = {"backward", "apply_gradients", "train_on_batch", "assign_sub", "GradientTape", "minimize"}
SCHEDULERS = ("sch", "lr", "warm", "env", "prof")  # their step trains nothing
COUNTER = "training_so_far"
STOP = "StopEarly"
FIT = {"epochs", "batch_size", "verbose", "validation_data", "validation_split"}  # tells Keras' fit from others
EPOCHS_OF_OTHERS = "max_epochs"  # of Lightning's Trainer and skorch's estimators
ARGUMENTS = {"max_steps", "num_train_epochs"}  # tells what sets a Trainer up from other calls

Loop = ast.For | ast.While
Defined = ast.FunctionDef | ast.AsyncFunctionDef


def cut(source: str, length: str) -> str | None:
    """Return the script, cut to one epoch or to so many steps; None if nothing in it can be cut.

    A step is one pass of an innermost loop that trains, whatever the number of its optimizers. Every loop makes
    one pass at least, so that the names it binds exist; one over a list that is written out makes all of them.
    """
    tree = ast.parse(source)
    cutter = _Cutter(tree, length)
    cutter.visit(tree)
    if not cutter.cuts:
        return None
    _insert(tree, cutter.needs)
    return ast.unparse(ast.fix_missing_locations(tree))


class _Cutter(ast.NodeTransformer):
    """Cuts every training of a module."""

    def __init__(self, tree: ast.Module, length: str) -> None:
        self._length = length
        self._training, self._looping = _functions_that_train(tree)
        loops = [loop for loop in ast.walk(tree) if isinstance(loop, Loop) and self._is_training(loop)]
        self._inner = {id(loop) for loop in loops if not self._holds_a_loop(loop)}
        self._within = {_name(call) for loop in loops for call in ast.walk(loop) if isinstance(call, ast.Call)} - {
            None
        }
        self._depth = 0
        self._function: str | None = None
        self.cuts = 0
        self.needs: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        outside, self._function, depth, self._depth = self._function, node.name, self._depth, 0
        self.generic_visit(node)
        self._function, self._depth = outside, depth
        return node

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        return self._loop(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        given = {keyword.arg for keyword in node.keywords}
        name = _name(node) or ""
        if name == "fit" and given & FIT:
            self._keras(node)
        elif EPOCHS_OF_OTHERS in given:
            self._others(node, name)
        elif name.endswith("TrainingArguments") or given & ARGUMENTS:
            self._trainer(node)
        return node

    def _loop(self, node: Loop) -> ast.AST | list[ast.stmt]:
        if not self._is_training(node) or _is_written_out(node):
            self.generic_visit(node)
            return node
        outermost = self._depth == 0 and (self._function is None or self._function not in self._within)
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        inner = id(node) in self._inner
        if self._length == EPOCH:
            if inner:
                return node
            ends = "break"
        else:
            count = f"{COUNTER}.append(1)\n" if inner else ""
            ends = f"{count}if len({COUNTER}) >= {self._length}:\n    break"
            self.needs.add(COUNTER)
        self.cuts += 1
        node.body = [*_before_continue(node.body, ends), *ast.parse(ends).body]
        if outermost and self._length != EPOCH:
            return [*ast.parse(f"{COUNTER}.clear()").body, node]
        return node

    def _keras(self, node: ast.Call) -> None:
        self.cuts += 1
        if self._length == EPOCH and not _may_give_epochs_by_place(node):
            _set(node, "epochs", ast.Constant(1))
            return
        self.needs.add(STOP)
        stop = ast.parse(f"{STOP}({'' if self._length == EPOCH else self._length})", mode="eval").body
        others = next((keyword.value for keyword in node.keywords if keyword.arg == "callbacks"), None)
        kept = others.elts if isinstance(others, ast.List) else [ast.Starred(others, ast.Load())] if others else []
        _set(node, "callbacks", ast.List([*kept, stop], ast.Load()))

    def _trainer(self, node: ast.Call) -> None:
        self.cuts += 1
        epochs, steps = (1, -1) if self._length == EPOCH else (1000, int(self._length))
        _set(node, "num_train_epochs", ast.Constant(epochs))
        _set(node, "max_steps", ast.Constant(steps))

    def _others(self, node: ast.Call, name: str) -> None:
        if self._length == EPOCH:
            self.cuts += 1
            _set(node, EPOCHS_OF_OTHERS, ast.Constant(1))
        elif name == "Trainer":  # Lightning's; skorch counts no steps
            self.cuts += 1
            _set(node, EPOCHS_OF_OTHERS, ast.Constant(1000))
            _set(node, "max_steps", ast.Constant(int(self._length)))

    def _is_training(self, node: ast.AST) -> bool:
        return _any_trains(node, self._training)

    def _holds_a_loop(self, loop: Loop) -> bool:
        """Whether another loop that trains is in this one, or in a function that this one calls."""
        inside = [one for one in ast.walk(loop) if one is not loop]
        return any(
            (isinstance(one, Loop) and self._is_training(one)) or _name(one) in self._looping for one in inside
        )


def _functions_that_train(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Return the names of the functions in which something is trained, and of those that do so in a loop."""
    defined = [node for node in ast.walk(tree) if isinstance(node, Defined)]
    training: set[str] = set()
    looping: set[str] = set()
    while True:
        more = {one.name for one in defined if _any_trains(one, training)}
        loops = {
            one.name
            for one in defined
            for node in ast.walk(one)
            if _name(node) in looping or (isinstance(node, Loop) and _any_trains(node, more))
        }
        if (more, loops) == (training, looping):
            return training, looping
        training, looping = more, loops


def _any_trains(node: ast.AST, functions: set[str]) -> bool:
    return any(_trains(part) or _name(part) in functions for part in ast.walk(node))


def _trains(node: ast.AST) -> bool:
    """Whether this is a call that steps an optimizer, or that asks for gradients."""
    name = _name(node)
    if name != "step":
        return name in TRAINS
    stepped = ast.unparse(node).lower().partition(".step(")[0]
    return not any(word in stepped for word in SCHEDULERS)


def _name(node: ast.AST) -> str | None:
    """Return the last name of what is called; None if this is no call."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) and node.func.id != "step" else None


def _is_written_out(node: Loop) -> bool:
    return isinstance(node, ast.For) and isinstance(node.iter, ast.List | ast.Tuple)


def _before_continue(body: list[ast.stmt], ends: str) -> list[ast.stmt]:
    """Put the end of a pass before every `continue` of this loop, too."""
    written = []
    for statement in body:
        if isinstance(statement, ast.Continue):
            written += ast.parse(ends).body
        if not isinstance(statement, Loop | Defined | ast.ClassDef):
            for name in ("body", "orelse", "finalbody"):
                if isinstance(getattr(statement, name, None), list):
                    setattr(statement, name, _before_continue(getattr(statement, name), ends))
        written.append(statement)
    return written


def _set(node: ast.Call, name: str, value: ast.expr) -> None:
    node.keywords = [*(keyword for keyword in node.keywords if keyword.arg != name), ast.keyword(name, value)]


def _may_give_epochs_by_place(call: ast.Call) -> bool:
    """Whether a call of fit(x, y, batch_size, epochs) may do without the keyword."""
    return len(call.args) > 3 or any(isinstance(given, ast.Starred) for given in call.args)


def _insert(tree: ast.Module, needs: set[str]) -> None:
    """Define what the cuts use, after the imports at the top."""
    written = f"{COUNTER} = []\n" if COUNTER in needs else ""
    if STOP in needs:
        written += (
            f"import keras as _keras\n\nclass {STOP}(_keras.callbacks.Callback):\n"
            "    def __init__(self, steps=None):\n        super().__init__()\n        self.steps = steps\n\n"
            "    def on_epoch_end(self, epoch, logs=None):\n"
            "        if self.steps is None:\n            self.model.stop_training = True\n\n"
            "    def on_train_begin(self, logs=None):\n        self.seen = 0\n\n"
            "    def on_train_batch_end(self, batch, logs=None):\n        self.seen += 1\n"
            "        if self.steps is not None and self.seen >= self.steps:\n"
            "            self.model.stop_training = True\n"
        )
    place = max((number for number, node in enumerate(tree.body) if _is_opening(node)), default=-1) + 1
    tree.body[place:place] = ast.parse(written).body


def _is_opening(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)
