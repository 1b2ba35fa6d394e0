"""Starts the recorder in the interpreter that the harness runs a script in; every other process it leaves alone.

Python imports a module of this name at its start, so the script and what runs it need not know.
"""

import os

# Where torchrun starts the script, it is in the ranks that recording begins, not in torchrun.
if "SIDE_EFFECTS_RECORD" in os.environ and (os.environ["SIDE_EFFECTS_RANKS"] == "0" or "RANK" in os.environ):
    import recording

    record, script, folder, _ = (
        os.environ.pop(f"SIDE_EFFECTS_{name}") for name in ("RECORD", "SCRIPT", "FOLDER", "RANKS")
    )
    if (rank := os.environ.get("RANK", "0")) != "0":
        record = f"{record.removesuffix('.json')}.rank{rank}.json"
    recording.start(record, script, folder)
