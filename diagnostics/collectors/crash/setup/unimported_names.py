"""Recognises that a library uses a name which it imports only where an optional package is found.

Such an import stands under a question (`if is_peft_available():`) or a try, and says nothing where the package is
missing: the name is missed later, in the library's own line, as a NameError that reads like a slip of the user's.
"""

from __future__ import annotations

import re

from diagnostics.collectors.crash.frames import Crash, Recogniser
from diagnostics.collectors.tracebacks.topic import package_of
from diagnostics.collectors.tracebacks.unknown_errors import entries, of_packages, search
from diagnostics.facts.crash.known import KnownFailure

_NAME = re.compile(r"^name '(?P<name>\w{1,80})' is not defined")


def unimported_name(crash: Crash) -> KnownFailure | None:
    """Recognise a NameError in a library's own line.

    Returns:
        None if the line is the user's, if Python 2 had the name, or if the library imports all that it uses.
    """
    facts = crash.facts
    last = facts.frames[-1] if facts.frames else None
    if facts.exception != "NameError" or last is None or last.yours:
        return None
    found, library = _NAME.match(facts.message), package_of(last)
    if found is None or found["name"] in entries("python_2") or of_packages("guarding").fullmatch(library) is None:
        return None
    name = found["name"]
    if name == "_C":
        return None
    package = next((row["package"] for row in entries("brings") if search(row, name)), None)
    if package == library.replace("_", "-"):
        package = None
    what = "a package that it can do without" if package is None else package
    return KnownFailure(
        "installation-mismatch",
        f"{library}'s own line ({last.file}:{last.line}) uses {name}, which it imports only where it finds {what} "
        f"in a release that it accepts. {'That' if package is None else 'It'} is missing, too old, or fails while "
        "it is imported. No line of the training code is at fault.",
        (
            *_fixes(package, library, name, last.file),
            f"python -m pip install -U {library.replace('_', '-')}: now and then a release has the slip itself",
        ),
        facts.message,
    )


def _fixes(package: str | None, library: str, name: str, file: str) -> tuple[str, ...]:
    if package is None:
        return (f"look in {file} for the import of {name}: the if or try around it names the package to install",)
    module = {"pillow": "PIL", "opencv-python": "cv2"}.get(package, package.replace("-", "_"))
    return (
        f"python -m pip install -U {package}, with the Python that runs the program; restart process or kernel",
        f'python -c "import {module}": if it is installed, that shows why it cannot be imported; python -m pip '
        f"show {package} {library.replace('_', '-')}, for releases that do not go together",
    )


RECOGNISERS: tuple[Recogniser, ...] = (unimported_name,)
