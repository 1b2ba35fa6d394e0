"""Trains one of the programs of `tests/healthy/` as a script: builds it, trains it, prints what came of it.

What it built stays in this module's variables, where the harness finds it.

$ python tests/side_effects/drive.py tests/healthy/pytorch/mlp_classifier.py
"""

import importlib.util
import sys
from pathlib import Path

path = Path(sys.argv[1]).resolve()
spec = importlib.util.spec_from_file_location(path.stem, path)
program = importlib.util.module_from_spec(spec)
sys.modules[path.stem] = program
spec.loader.exec_module(program)
built = program.build()
metrics = program.train(*built)
print(metrics)
