"""How a frame is named to its reader."""

import subprocess
import sys

CELLS = [
    "import torch\nimport diagnostics",
    "labels = torch.tensor([0, 2])",
    "try:\n    torch.nn.functional.cross_entropy(torch.zeros(2, 2), labels)\nexcept IndexError as error:\n"
    "    print(diagnostics.explain(error))",
]
KERNEL = """
import sys
from ipykernel.compiler import XCachingCompiler
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(compiler_class=XCachingCompiler)
for cell in sys.argv[1:]:
    shell.run_cell(cell, store_history=True).raise_error()
"""


class TestShorten:
    def test_a_cell_of_a_notebook_is_called_by_its_number(self):
        done = subprocess.run([sys.executable, "-c", KERNEL, *CELLS], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert "In[3]:2" in done.stdout
        assert "ipykernel_" not in done.stdout
