"""What the exhibits stand on: corpora and checkpoints that need no network, built once per machine.

Cheap to import: the frameworks are imported when something is asked for.
"""

from bugs.lab.checkpoint import checkpoint, preset
from bugs.lab.corpus import corpus
from bugs.lab.device import device
from bugs.lab.digits import digit_checkpoint, digits
from bugs.lab.instructions import instructions
from bugs.lab.language_model import language_model
from bugs.lab.meeting_point import meeting_point
from bugs.lab.memory_budget import memory_budget
from bugs.lab.notebook import open_notebook
from bugs.lab.shared_card import shared_card

__all__ = [
    "checkpoint",
    "corpus",
    "device",
    "digit_checkpoint",
    "digits",
    "instructions",
    "language_model",
    "meeting_point",
    "memory_budget",
    "open_notebook",
    "preset",
    "shared_card",
]
