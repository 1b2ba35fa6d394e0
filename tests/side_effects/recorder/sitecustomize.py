"""Starts the recorder in the interpreter that the harness runs a script in; every other process it leaves alone.

Python imports a module of this name at its start, so the script and what runs it need not know.
"""

import os

if "SIDE_EFFECTS_RECORD" in os.environ:
    import recording

    recording.start(*(os.environ.pop(f"SIDE_EFFECTS_{name}") for name in ("RECORD", "SCRIPT", "FOLDER")))
