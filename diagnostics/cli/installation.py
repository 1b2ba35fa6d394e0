"""Checks how this package is installed, and whether another distribution wrote into its folder."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

DISTRIBUTION = "training-diagnostics"
_FOREIGN = re.compile(r"(diagnostics-\d[^-]*)(?:-py[\d.]+)?\.(?:dist|egg)-info", re.IGNORECASE)
PACKAGE = Path(__file__).resolve().parents[1]


def damage(package: Path = PACKAGE) -> str | None:
    """Report damage done by PyPI's distribution `diagnostics`, which has a package of the same name.

    Whichever of the two is installed last overwrites the other's `__init__.py`, and uninstalling it removes that
    file. Metadata is not read, because that would take longer than listing a folder.

    Args:
        package: the folder of this package.

    Returns:
        What is wrong and what to do, in one line; None if nothing is wrong.
    """
    again = f"python -m pip install --force-reinstall --no-deps {DISTRIBUTION}"
    found = (_FOREIGN.fullmatch(name) for name in sorted(os.listdir(package.parent)))
    foreign = next((match[1].replace("-", " ") for match in found if match), None)
    if foreign is not None:
        return (
            f"the unrelated package {foreign} is installed in the same folder and may have overwritten files of "
            f"{DISTRIBUTION}. Run: python -m pip uninstall -y diagnostics && {again}"
        )
    if not hasattr(sys.modules[__name__.partition(".")[0]], "load_ipython_extension"):
        return f"files of {DISTRIBUTION} are missing or overwritten. Run: {again}"
    return None
