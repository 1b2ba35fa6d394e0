"""`check_notebook`: notebooks that run from the top, and notebooks that do not."""

import tempfile
from pathlib import Path

import diagnostics
from tests.support.notebooks import numbered, write

from .case import cases


def checked(cells):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            report = diagnostics.check_notebook(write(Path(folder, "train.ipynb"), *cells))
        return str(report) if report.findings else ""

    return run


TRAIN = "def train(model, rate):\n    return model, rate"

CASES = [
    *cases(
        {
            "run from the top": checked(numbered("import math", "rate = math.pi", "print(rate)")),
            "never run": checked(["import math", "rate = math.pi"]),
            "functions with arguments": checked(numbered(TRAIN, "model = object()", "train(model, 0.1)")),
            "classes and imports in functions": checked(
                numbered(
                    "import math\nclass Net:\n    def area(self, r):\n        return math.pi * r", "Net().area(1)"
                )
            ),
            "a magic and a shell line": checked(numbered("%time\n!ls", "rows = [i for i in range(3)]", "rows")),
        },
        {
            "cell deleted": (checked([(1, TRAIN), (4, "train(model, 0.1)")]), "name-before-definition"),
            "used above its definition": (
                checked([(3, "clean('a')"), (2, "def clean(row):\n    return row")]),
                "name-before-definition",
            ),
            "function that reads a loop's last value": (
                checked(numbered("for batch in [1, 2]:\n    pass", "def step():\n    return batch", "step()")),
                "function-reads-globals",
            ),
            "cells out of order": (
                checked([(5, "rate = 0.1"), (2, "doubled = 2 * rate"), (6, "print(doubled)")]),
                "cells-out-of-order",
            ),
            "built-in function that became a number": (
                checked(numbered("sum = 0.0\nfor n in [1, 2]:\n    sum += n", "print(sum([1, 2]))")),
                "redefined-name",
            ),
        },
    )
]
