"""`report.to_markdown()`: briefs that name the failure, and hold nothing private."""

import os
import socket

import diagnostics

from .case import cases

PRIVATE = {
    "home folder": "/home/jane.doe/secret-project/train.py",
    "address": "jane.doe@example.org",
    "token": "hf_abcdefghijklmnopqrstuvwxyzABCDEF",
    "host": "gpu-17.cluster.example.org",
    "folder on Windows": "C:\\Users\\jane.doe\\secret\\train.py",
    "address of a machine": "10.20.30.40:29500",
}


def brief(text):
    return diagnostics.explain(text).to_markdown()


def leaked(text, *private):
    """Return what of the private text stands in the brief of a traceback."""

    def run():
        made = brief(text)
        return " ".join(one for one in (*private, os.path.expanduser("~/"), socket.gethostname()) if one in made)

    return run


def named(text):
    return lambda: brief(text)


def traceback(error, line="loss = loss_fn(model(x), y)", file="/home/jane.doe/secret-project/train.py"):
    return f'Traceback (most recent call last):\n  File "{file}", line 7, in <module>\n    {line}\n{error}\n'


LABELS = traceback("IndexError: Target 2 is out of bounds.")
SHAPES = traceback("RuntimeError: mat1 and mat2 shapes cannot be multiplied (16x8 and 4x3)")
MEMORY = traceback(
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.00 "
    "GiB of which 1.00 GiB is free. Of the allocated memory 13.00 GiB is allocated by PyTorch, and 100.00 MiB is "
    "reserved by PyTorch but unallocated."
)
GRAPH = traceback("RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn")
DEVICES = traceback(
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
)
TOKEN = traceback(f"ValueError: bad token {PRIVATE['token']}", f'login("{PRIVATE["token"]}")')
MAIL = traceback(f"ValueError: mail to {PRIVATE['address']} failed")
HOST = traceback(f"ConnectionError: {PRIVATE['host']} ({PRIVATE['address of a machine']}) refused the connection")
WINDOWS = traceback("IndexError: Target 2 is out of bounds.", file=PRIVATE["folder on Windows"])

CASES = [
    *cases(
        {
            "folders": leaked(LABELS, "jane.doe", "secret-project"),
            "folders of Windows": leaked(WINDOWS, "jane.doe", "secret"),
            "tokens": leaked(TOKEN, PRIVATE["token"]),
            "mail addresses": leaked(MAIL, PRIVATE["address"]),
            "hosts and their addresses": leaked(HOST, PRIVATE["host"], "10.20.30.40"),
        },
        {
            "labels": (named(LABELS), "labels-out-of-range"),
            "shapes": (named(SHAPES), "shape-mismatch"),
            "memory": (named(MEMORY), "out-of-memory"),
            "graph": (named(GRAPH), "no-gradient"),
            "devices": (named(DEVICES), "device-mismatch"),
        },
    )
]
