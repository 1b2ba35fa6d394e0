"""Private modules of Keras and TensorFlow are named in two files; a release may move any of them."""

import re
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[2] / "diagnostics"
HOMES = {"collectors/keras/internals.py", "taps/keras.py"}
NOT_IMPORTED = {
    "collectors/system/environment.py",  # looks whether it was imported
}


def test_private_modules_are_named_in_the_adapter_and_the_taps_alone():
    private = re.compile(r"\bkeras\.src\b|\btensorflow\.python\b")
    files = [path for path in LIBRARY.rglob("*.py") if private.search(path.read_text("utf-8"))]
    named = {file.relative_to(LIBRARY).as_posix() for file in files}
    assert named == HOMES | NOT_IMPORTED
