"""How a file is told apart and named."""

import json
import subprocess
import sys

import pytest

from diagnostics.facts.where import is_user_code, shorten

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

    @pytest.mark.parametrize(
        ("file", "called"),
        [
            ("<ipython-input-12-00aa11bb22cc>", "In[12]"),
            ("/tmp/ipython-input-2-3452168291.py", "In[2]"),
            ("/tmp/ipython-input-3452168291.py", "/tmp/ipython-input-3452168291.py"),
            ("/env/lib/python3.11/site-packages/torch/nn/functional.py", "torch/nn/functional.py"),
            (r"C:\env\lib\site-packages\torch\nn\functional.py", "torch/nn/functional.py"),
            (r"C:\Users\Ada\project\train.py", r"C:\Users\Ada\project\train.py"),
        ],
    )
    def test_a_path_is_cut_to_what_a_reader_needs(self, file, called):
        assert shorten(file) == called


class TestIsYours:
    @pytest.mark.parametrize(
        "file",
        [
            "/home/ada/project/train.py",
            "/home/ada/bin/train",
            r"C:\Users\Ada\lib\train.py",
            r"D:\python\project\train.py",
            "<ipython-input-12-00aa11bb22cc>",
            "In[3]",
            "<stdin>",
            "/content/train.py",
        ],
    )
    def test_a_file_of_the_users_own(self, file):
        assert is_user_code(file)

    @pytest.mark.parametrize(
        "file",
        [
            json.__file__,
            pytest.__file__,
            "/opt/conda/lib/python3.10/json/decoder.py",
            "/usr/lib64/python3.9/runpy.py",
            "/usr/local/lib/python3.12/dist-packages/torch/nn/functional.py",
            r"C:\Users\Ada\AppData\Local\Programs\Python\Python39\lib\runpy.py",
            r"C:\Users\Ada\anaconda3\envs\nli\lib\json\decoder.py",
            "/home/ada/miniconda3/bin/torchrun",
            r"C:\Python310\Scripts\accelerate.exe\__main__.py",
            "<frozen runpy>",
            "<decorator-gen-53>",
        ],
    )
    def test_a_file_that_was_installed_on_whatever_machine(self, file):
        assert not is_user_code(file)
