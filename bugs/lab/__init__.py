"""What the exhibits stand on: a corpus and a checkpoint that need no network, built once per machine.

Cheap to import: the frameworks are imported when something is asked for.
"""

from bugs.lab.checkpoint import checkpoint
from bugs.lab.corpus import corpus

__all__ = ["checkpoint", "corpus"]
