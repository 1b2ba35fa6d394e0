"""`python -m diagnostics` is the command `diagnose`."""

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
