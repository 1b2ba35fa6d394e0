"""`diagnose network`: checks that the ranks of a job can communicate."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diagnostics.api.network import LIMIT_S, PROCESSES, look_at_network

from .rendering import add_rendering, seconds, write_report

DESCRIPTION = """\
Checks that the ranks of a job can communicate. Each rank allocates memory on its device, joins the rendezvous,
connects to every other rank over TCP, and takes part in a barrier, an all-reduce and an exchange with every other
rank, with a time limit for each step. Under torchrun, srun or mpirun, each process is one rank, and rank 0 reports
for all. Without a launcher, the command starts its own processes.
"""
EPILOG = """\
To start it: torchrun --nnodes 2 --nproc-per-node 8 ... -m diagnostics network; srun diagnose network; or just
diagnose network.
"""
MOST_PROCESSES = 64  # on this host: each imports PyTorch


def add_to(commands: Any, summary: str) -> None:
    """Add `network` to the subparsers of `diagnose`."""
    network = commands.add_parser("network", help=summary, description=DESCRIPTION, epilog=EPILOG)
    network.add_argument(
        "--nproc",
        metavar="N",
        type=_count,
        help=f"number of processes to start on this host (default: {PROCESSES})",
    )
    network.add_argument(
        "--backend", choices=("gloo", "nccl"), default="", help="default: nccl if all ranks have GPUs"
    )
    network.add_argument(
        "--limit",
        metavar="S",
        type=seconds,
        default=LIMIT_S,
        help=f"time limit for each step in seconds (default: {LIMIT_S:g})",
    )
    network.add_argument(  # not --logs: torchrun reads that as its own --logs-specs, even after -m
        "--keep-logs",
        dest="logs",
        metavar="FOLDER",
        type=Path,
        help="keep the output of each rank's libraries in this folder",
    )
    add_rendering(network)
    network.set_defaults(command=try_network)


def try_network(options: argparse.Namespace) -> int:
    """Check the network; return 1 if this process reports a warning or an error."""
    with _until_terminated() as terminated:
        _, report = look_at_network(
            processes=options.nproc,
            backend=options.backend,
            limit=options.limit,
            logs=options.logs,
            stopped=terminated.is_set,
        )
    if report is None:
        return 0
    if terminated.is_set():
        print("diagnose: ended by SIGTERM; this is what was known by then", file=sys.stderr)
    write_report(options, report)
    found = any(finding.severity != "note" for finding in report.findings)
    return 128 + signal.SIGTERM if terminated.is_set() else int(found)


@contextmanager
def _until_terminated() -> Iterator[threading.Event]:
    """Turn SIGTERM into an event: a launcher sends it to all ranks if one fails, and rank 0 must still report."""
    terminated = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: terminated.set())
    try:
        yield terminated
    finally:
        signal.signal(signal.SIGTERM, before)


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= MOST_PROCESSES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes, 1 to {MOST_PROCESSES}")
    return int(text)
