"""IPython's own syntax is turned into Python, line by line, wherever a statement begins and nowhere else."""

import ast

import pytest

from diagnostics.collectors.notebook.magics import as_python


def shown(source):
    return ast.unparse(as_python(source).tree)


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("%matplotlib inline\nx = 1", "pass\nx = 1"),
        ("!pip install torch \\\n   numpy\nx = 1", "pass\nx = 1"),
        ("files = !ls *.csv\nhere = %pwd\nlen(files)", "files = object()\nhere = object()\nlen(files)"),
        ("%time model.fit(x)\n%prun train()", "model.fit(x)\ntrain()"),
        ("?np.zeros\nnp.zeros?\nmodel??\ny = 2", "pass\npass\npass\ny = 2"),
        ("for i in range(3):\n    !echo {i}\n    %time f(i)", "for i in range(3):\n    pass\n    f(i)"),
        ("pip install torch\nls\nx = 1", "pass\npass\nx = 1"),
        ("x = (3\n% 2)\ny = '''\n%matplotlib\n!ls\n'''\n!ls", "x = 3 % 2\ny = '\\n%matplotlib\\n!ls\\n'\npass"),
        ("# it's\nx = \"a ' b\"  # (\n!ls", 'x = "a \' b"\npass'),
        ("await fetch()\nasync with session as s:\n    pass", "await fetch()\nasync with session as s:\n    pass"),
        ("%%time\n!ls\nx = 1", "pass\nx = 1"),
        ("%%capture out\n%%time\nx = 1", "x = 1"),
        ("%%bash\nfor f in *; do echo $f; done", ""),
        ("%%writefile train.py\nimport torch", ""),
    ],
)
def test_becomes_python(source, python):
    assert shown(source) == python
    assert as_python(source).problem == ""


def test_keeps_the_numbers_of_the_lines():
    tree = as_python("\n%%time\n!ls \\\n -l\n%matplotlib inline\nx = 1").tree
    assert tree.body[-1].lineno == 6


@pytest.mark.parametrize(
    ("source", "opaque"),
    [
        ("%load_ext autoreload\n%autoreload 2", False),
        ("%env WANDB_MODE=offline", False),
        ("%run helpers.py", True),
        ("%pylab inline", True),
        ("%store -r", True),
        ("%%sql\nselect 1", True),
        ("%%cython\ncdef int x", True),
        ("%%html\n<b>", False),
        ("x = %sql select 1", True),
    ],
)
def test_what_may_define_any_name_is_told_apart(source, opaque):
    assert as_python(source).opaque is opaque


def test_knows_what_magics_define_forget_and_do_not_keep():
    assert as_python("%%capture out\nx = 1").defines == ("out",)
    assert as_python("%%bash --out listing --err=wrong\nls").defines == ("listing", "wrong")
    assert as_python("%reset -f\nx = 1").forgets
    assert not as_python("%%timeit\nx = 1").keeps


def test_says_why_a_cell_is_no_python():
    cell = as_python("def f(:\n  pass")
    assert (cell.opaque, cell.problem) == (True, "line 1: invalid syntax")
    assert not cell.tree.body
