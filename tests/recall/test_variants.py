"""A variant of a script does what the script does."""

from __future__ import annotations

import ast
import contextlib
import io
import textwrap

import pytest

from tests.recall.programs import programs, source
from tests.recall.variants import CLASS, FUNCTION, RENAMED, VARIANTS, variant

SCRIPT = '''
    """A script."""
    import math as maths
    from dataclasses import dataclass

    factor = 2

    @dataclass
    class Point:
        x: int
        y: int = 3

        def scaled(self):
            return factor * (self.x + self.y)

    def total(points, start=0):
        for point in points:
            start += point.scaled()
        return start

    points = [Point(x=number) for number in range(4)]
    for number, point in enumerate(points):
        point.y = number
    try:
        raise ValueError("bad")
    except ValueError as error:
        print(error)
    if (count := len(points)) > 3:
        print(count, total(points, start=1), maths.floor(2.5), f"{factor:>3}")
    by_size = sorted(points, key=lambda point: -point.x)
    print([point.x for point in by_size], point.x)

    def main():
        print("done", factor)

    if __name__ == "__main__":
        main()
'''


def printed(source: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, "script.py", "exec"), {"__name__": "__main__"})
    return out.getvalue()


@pytest.mark.parametrize("kind", VARIANTS)
def test_prints_what_the_script_prints(kind):
    script = textwrap.dedent(SCRIPT)
    rewritten = variant(script, kind)
    assert rewritten is not None
    assert rewritten != script
    assert printed(rewritten) == printed(script) != ""


def test_keeps_no_name_of_a_variable():
    names = {
        node.id
        for node in ast.walk(ast.parse(variant(textwrap.dedent(SCRIPT), RENAMED)))
        if type(node) is ast.Name
    }
    assert not {"factor", "by_size", "error", "count", "number"} & names
    assert "points" in names  # a parameter


def test_leaves_nothing_but_definitions_and_imports_in_the_module():
    rewritten = variant(textwrap.dedent(SCRIPT), FUNCTION)
    assert "\nfactor" not in rewritten
    assert "\n    factor = 2" in rewritten


def test_turns_variables_into_attributes():
    assert "self.factor = 2" not in variant(textwrap.dedent(SCRIPT), CLASS)  # a class's method reads it
    assert "self.by_size = sorted" in variant(textwrap.dedent(SCRIPT), CLASS)


@pytest.mark.parametrize("text", ["global x\nx = 1", "x = 1\nprint(globals())"])
def test_refuses_what_looks_names_up(text):
    assert variant(text, RENAMED) is None


@pytest.mark.parametrize("kind", VARIANTS)
def test_compiles_every_program(kind):
    made = [variant(source(program), kind) for program in programs()]
    for text in filter(None, made):
        compile(text, "variant.py", "exec")
    assert sum(text is not None for text in made) > 0.9 * len(made)
