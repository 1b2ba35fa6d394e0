"""`diagnose attach`: asks a program that trains for a report."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from diagnostics.errors import InvalidInput
from diagnostics.report.formats import FORMATS
from diagnostics.report.requests import folder, is_private, request_file

DESCRIPTION = """\
Asks a running program for a report, and prints the report; the program continues. The program must run under
`diagnose run`, or use diagnostics.watch or a callback. It answers between two training steps. No signal is sent,
so SIGUSR1 handlers (Slurm, Lightning, submitit) are not affected, and a program that does not listen is unharmed.
"""
EPILOG = """\
Run it on the same machine, in the same container and as the same user. Exit codes: 0 no findings of severity
warning or above, 1 findings, 2 no report.
"""
WAIT_S = 20.0
OF_ANOTHER = "process {} belongs to {}. Run diagnose attach as that user."
_PROCESSES = Path("/proc")  # of Linux; elsewhere less is known of a process


def add_to(commands: Any, summary: str) -> None:
    """Add `attach` to the subparsers of `diagnose`."""
    attach = commands.add_parser("attach", help=summary, description=DESCRIPTION, epilog=EPILOG)
    attach.add_argument("process", metavar="PID", type=int, help="process id, as shown by `ps`")
    attach.add_argument("--format", choices=FORMATS, default="text")
    attach.add_argument(
        "--no-redact", action="store_true", help="do not redact folders, host names, secrets and data in Markdown"
    )
    attach.add_argument(
        "--wait", metavar="S", type=float, default=WAIT_S, help=f"seconds to wait for a step (default: {WAIT_S:g})"
    )
    attach.set_defaults(command=attach_to)


def attach_to(options: argparse.Namespace) -> int:
    """Print the report of a running program, and return the exit code.

    Raises:
        InvalidInput: there is no report.
    """
    if not hasattr(os, "getuid"):
        raise InvalidInput("attach is not supported on Windows.")
    user, process = os.getuid(), options.process
    _check_process(process, user)
    asked = {"format": options.format, "redact": not options.no_redact, "number": random.getrandbits(48)}
    answer = folder(user) / f"{asked['number']}.answer"
    with _asking(user, process, asked, answer):
        ends = time.monotonic() + options.wait
        while not answer.exists():
            if not _is_alive(process):
                raise InvalidInput(f"process {process} ended before its next step.")
            if not time.monotonic() <= ends:  # also for `--wait nan`
                raise InvalidInput(_no_answer(process, options.wait, user))
            time.sleep(0.05)
        answered = json.loads(answer.read_text("utf-8"))
    print(answered["report"])
    return int(answered["found"])


@contextlib.contextmanager
def _asking(user: int, process: int, asked: dict[str, Any], answer: Path) -> Iterator[None]:
    """Ask within, and leave no file behind."""
    place, request = folder(user), request_file(user, process)
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        if not is_private(place, user):
            raise InvalidInput(f"{place} is not a folder of yours alone. Remove it, and try again.")
        scratch = answer.with_suffix(".asked")
        try:
            scratch.write_text(json.dumps(asked), "utf-8")
            scratch.rename(request)
        finally:
            scratch.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInput(f"{place} cannot be written: {error.strerror}.") from None
    try:
        yield
    finally:
        request.unlink(missing_ok=True)
        answer.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another is asking
            place.rmdir()


def _check_process(process: int, user: int) -> None:
    if process < 1 or not _is_alive(process):
        raise InvalidInput(f"there is no process {process} on this machine.{_others(process, user)}")
    with contextlib.suppress(OSError):
        owner = (_PROCESSES / str(process)).stat().st_uid
        if owner != user:
            raise InvalidInput(OF_ANOTHER.format(process, f"user {_name(owner)}"))


def _is_alive(process: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    try:
        os.kill(process, 0)  # asks, and sends nothing
        state = (_PROCESSES / str(process) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        raise InvalidInput(OF_ANOTHER.format(process, "another user")) from None
    except OSError:
        return True  # not Linux
    return state not in "ZX"


def _no_answer(process: int, waited: float, user: int) -> str:
    said = f"process {process} did not answer within {waited:g} s"
    if (words := _command(process)) and not _is_diagnose(words):
        return (
            f"{said}. It is `{' '.join(words)[:80]}`, not `diagnose run`, so it answers only while "
            f"diagnostics.watch or a callback watches it.{_others(process, user)}"
        )
    return (
        f"{said}: it ended no training step meanwhile. It imports, loads data, evaluates or hangs; "
        f"`py-spy dump --pid {process}` shows where. `--wait S` waits longer.{_others(process, user)}"
    )


def _others(process: int, user: int) -> str:
    """Name other processes of the user's that may have been meant."""
    found = []
    for entry in sorted(_PROCESSES.glob("[0-9]*")):
        with contextlib.suppress(OSError):
            if entry.stat().st_uid == user and _is_diagnose(words := _command(int(entry.name))):
                found.append(f"{entry.name} ({' '.join(words[words.index('run') :])[:60]})")
    found = [other for other in found if other.partition(" ")[0] != str(process)]
    return f" `diagnose run` runs in: {', '.join(found[:4])}." if found else ""


def _command(process: int) -> list[str]:
    """Return the words of the command that a process is; empty if not known."""
    try:
        text = (_PROCESSES / str(process) / "cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return []
    return [word for word in text.split("\0") if word]


def _is_diagnose(words: list[str]) -> bool:
    return any(Path(one).name in ("diagnose", "diagnostics") and other == "run" for one, other in pairwise(words))


def _name(user: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
