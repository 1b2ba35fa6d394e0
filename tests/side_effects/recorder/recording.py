"""Records what a script has read and how it leaves its process: values, random states, settings, peak of memory.

The record is a flat JSON object from a path, as `model.head.weight`, to a short text or digest, so that two
records are compared key by key. Nothing of `diagnostics` is used here: it is what is tested.
"""

import atexit
import builtins
import contextlib
import functools
import inspect
import os
import pathlib
import random
import re
import sys

READS = ("__getitem__", "__getitems__", "__iter__", "__call__", "__len__")
DEEPEST = 8  # levels of containers and objects; what lies deeper is not compared
LONGEST = 2000  # entries of a container that are compared one by one
# Variables that differ between two plain runs, too: the shell's, what another process leaves of the zoo's
# simulated GPU, and where torchrun's ranks meet.
VARYING = (
    "_",
    "SHLVL",
    "TF_CPU_BFC_MEM_LIMIT_IN_MB",
    "MASTER_PORT",
    "TORCHELASTIC_ERROR_FILE",
    "TORCHELASTIC_RUN_ID",
)
PEAK = "peak of memory, MiB"  # the only number among the values, compared with a margin

_reads = {}


def start(record, script, folder):
    """Count reads from now on, and write the record to a file at the interpreter's end.

    Args:
        record: the file.
        script: the file that is run.
        folder: where the script's own classes are defined; their reads are counted, their attributes recorded.
    """
    started = []
    unseeded = ["torch._C"]

    def seed(event, arguments):
        """Seed Python's and NumPy's generators where the script begins: they take an unknown seed otherwise.

        PyTorch's is seeded in the middle of PyTorch's own import, long before the script may seed or use it.
        """
        if event == "import" and unseeded and "torch._C" in sys.modules:
            sys.modules[unseeded.pop()].default_generator.manual_seed(0)
        of_script = event == "exec" and getattr(arguments[0], "co_filename", None) == script
        if not started and (of_script or event == "cpython.run_file"):
            started.append(event)
            random.seed(0)
            if "numpy" in sys.modules:
                sys.modules["numpy"].random.seed(0)

    sys.addaudithook(seed)
    with contextlib.suppress(ImportError):
        import numpy  # noqa: F401  before the script, so that its generator is there to be seeded
    process, make = os.getpid(), builtins.__build_class__

    def make_counted(body, name, /, *bases, **keywords):
        made = make(body, name, *bases, **keywords)
        if body.__code__.co_filename.startswith(folder) and isinstance(made, type):
            for method in READS:
                if inspect.isfunction(made.__dict__.get(method)):
                    setattr(made, method, _counted(made.__dict__[method], f"{name}.{method}"))
        return made

    builtins.__build_class__ = make_counted
    atexit.register(lambda: os.getpid() == process and _write(record, folder))  # first in, so called last


def _counted(method, name):
    """Count calls of a method with their arguments, and the items that it yields."""

    def note(*arguments):
        plain = [a if isinstance(a, int | str | list | tuple | slice) else type(a).__name__ for a in arguments]
        count, last = _reads.get(name, (0, 0))
        _reads[name] = (count + 1, hash((last, repr(plain))))

    if inspect.isgeneratorfunction(method):

        @functools.wraps(method)
        def counted(self, *arguments, **keywords):
            note(*arguments)
            for item in method(self, *arguments, **keywords):
                note("item")
                yield item
    else:

        @functools.wraps(method)
        def counted(self, *arguments, **keywords):
            note(*arguments)
            return method(self, *arguments, **keywords)

    return counted


def _write(record, folder):
    import json

    entries = {
        f"reads of {name}": f"{count} ({digest & 0xFFFFFFFF:08x})" for name, (count, digest) in _reads.items()
    }
    entries |= _random_states() | _settings()
    describer = _Describer(folder)
    main = sys.modules["__main__"]
    for name, value in sorted(vars(main).items()):
        if not name.startswith("__"):
            describer.describe(name, value)
    entries |= describer.entries | {PEAK: _peak_mib()}
    with open(record, "w", encoding="utf-8") as file:
        json.dump(entries, file, default=str)


def _peak_mib():
    """Return the most memory that this process held at once.

    Linux's `ru_maxrss` begins with what the process held that has started this one; VmHWM does not.
    """
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) // 2**10
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2**20  # macOS counts bytes


def _random_states():
    states = {"random state of Python": _digest(repr(random.getstate()).encode())}
    if (numpy := sys.modules.get("numpy")) is not None:
        states["random state of NumPy"] = _digest(repr(numpy.random.get_state(legacy=False)).encode())
    if (torch := sys.modules.get("torch")) is not None:
        states["random state of PyTorch"] = _digest(torch.get_rng_state().numpy().tobytes())
    if (tensorflow := sys.modules.get("tensorflow")) is not None:
        from tensorflow.python.eager import context

        states["random state of TensorFlow"] = repr(
            (context.context()._seed, _digest(repr(context.context()._rng.getstate()).encode()))
            if context.context()._rng is not None
            else tensorflow.__version__
        )
    if (keras := sys.modules.get("keras")) is not None:
        seeds = keras.src.backend.common.global_state.get_global_attribute("global_seed_generator")
        states["random state of Keras"] = (
            "none" if seeds is None else repr(keras.ops.convert_to_numpy(seeds.state))
        )
    return states


def _settings():
    import signal
    import threading

    environment = repr(sorted((k, v) for k, v in os.environ.items() if k not in VARYING))
    settings = {
        "working directory": os.getcwd(),
        "arguments": repr(sys.argv[1:]),
        "environment": environment.replace(f"/proc/{os.getpid()}/", "/proc/self/"),
        "sys.path[0]": sys.path[0],
        "excepthook": repr(sys.excepthook is sys.__excepthook__),
        "signal handlers": repr(
            [str(signal.getsignal(n)) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)]
        ),
        "threads": repr(sorted(t.name for t in threading.enumerate() if not t.daemon)),
        "recursion limit": repr(sys.getrecursionlimit()),
    }
    if (torch := sys.modules.get("torch")) is not None:
        settings["PyTorch's settings"] = repr(
            (
                torch.is_grad_enabled(),
                torch.is_anomaly_enabled(),
                torch.get_default_dtype(),
                torch.are_deterministic_algorithms_enabled(),
                torch.is_autocast_enabled("cpu"),
                torch.get_num_threads(),
            )
        )
    return settings


class _Describer:
    """Turns values into entries."""

    def __init__(self, folder):
        self.entries = {}
        self._folder, self._seen = folder, {}

    def describe(self, path, value, depth=0):
        if isinstance(value, int | float | complex | str | bytes | bool | None):
            said = value.hex() if isinstance(value, float) else repr(value)[:LONGEST]
            self.entries[path] = re.sub(r"/tmp[\w./-]+", "a temporary file", said)
            return
        if id(value) in self._seen or depth > DEEPEST or inspect.ismodule(value) or isinstance(value, type):
            return
        self._seen[id(value)] = value  # held, so that no other value gets its id
        torch, keras = sys.modules.get("torch"), sys.modules.get("keras")
        if torch is not None and isinstance(value, torch.Tensor):
            self._tensor(path, value)
        elif torch is not None and isinstance(value, torch.nn.Module):
            self._module(path, value, depth)
        elif torch is not None and isinstance(value, torch.optim.Optimizer | torch.optim.lr_scheduler.LRScheduler):
            self.describe(f"{path}.state_dict()", value.state_dict(), depth)
        elif torch is not None and isinstance(value, torch.Generator):
            self.entries[path] = _digest(value.get_state().numpy().tobytes())
        elif keras is not None and isinstance(value, keras.Model):
            self._keras(path, value, depth)
        elif keras is not None and isinstance(value, keras.callbacks.History):
            self.describe(f"{path}.history", value.history, depth)
        elif type(value).__module__.partition(".")[0] == "numpy":
            self._numpy(path, value)
        elif isinstance(value, dict):
            for key, item in list(value.items())[:LONGEST]:
                if not (isinstance(key, str) and _is_run_time(key)):
                    self.describe(f"{path}[{key!r:.80}]", item, depth + 1)
        elif isinstance(value, list | tuple):
            self.entries[f"len({path})"] = repr(len(value))
            for place, item in enumerate(value[:LONGEST]):
                self.describe(f"{path}[{place}]", item, depth + 1)
        elif isinstance(value, set | frozenset):
            self.entries[path] = repr(sorted(map(repr, value)))[:LONGEST]
        elif isinstance(value, random.Random):
            self.entries[path] = _digest(repr(value.getstate()).encode())
        elif (transformers := sys.modules.get("transformers.trainer")) and isinstance(value, transformers.Trainer):
            self._trainer(path, value, depth)
        elif self._is_the_scripts(type(value)) and hasattr(value, "__dict__"):
            for name, item in sorted(vars(value).items()):
                self.describe(f"{path}.{name}", item, depth + 1)

    def _tensor(self, path, tensor):
        import torch

        try:
            plain = tensor.detach().cpu()
            plain = plain.to_dense() if plain.layout is not torch.strided else plain
            content = _digest(plain.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        except (RuntimeError, NotImplementedError, TypeError):
            content = type(tensor).__name__
        self.entries[path] = f"{tuple(tensor.shape)} {tensor.dtype} {content}"

    def _module(self, path, module, depth):
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            self._tensor(f"{path}.{name}", tensor)
            self.entries[f"{path}.{name}.requires_grad"] = repr(tensor.requires_grad)
            if tensor.is_leaf and tensor.grad is not None:
                self._tensor(f"{path}.{name}.grad", tensor.grad)
        for name, part in module.named_modules():
            hooks = (part._forward_hooks, part._forward_pre_hooks, part._backward_hooks, part._backward_pre_hooks)
            self.entries[f"{path}.{name} mode and hooks"] = repr((part.training, [len(kind) for kind in hooks]))
            if self._is_the_scripts(type(part)):
                own = {k: v for k, v in vars(part).items() if not k.startswith("_")}
                self.describe(f"{path}.{name} attributes", own, depth)

    def _keras(self, path, model, depth):
        for place, weights in enumerate(model.get_weights()):
            self._numpy(f"{path}.weights[{place}]", weights)
        for place, variable in enumerate(getattr(getattr(model, "optimizer", None), "variables", [])):
            self._numpy(f"{path}.optimizer.variables[{place}]", variable.numpy())
        if self._is_the_scripts(type(model)):
            own = {name: item for name, item in vars(model).items() if isinstance(item, int | float | str | list)}
            self.describe(f"{path} attributes", own, depth)

    def _trainer(self, path, trainer, depth):
        for name in ("model", "optimizer", "lr_scheduler", "data_collator", "train_dataset", "eval_dataset"):
            self.describe(f"{path}.{name}", getattr(trainer, name), depth + 1)
        self.describe(f"{path}.state.log_history", trainer.state.log_history, depth + 1)
        self.entries[f"{path}.callbacks"] = repr([type(c).__name__ for c in trainer.callback_handler.callbacks])
        for callback in trainer.callback_handler.callbacks:
            self.describe(f"{path}.callbacks.{type(callback).__name__}", callback, depth + 1)
        for name, item in sorted(vars(trainer).items()):
            if isinstance(item, int | float | dict | list) and not _is_run_time(name):
                self.describe(f"{path}.{name}", item, depth + 1)

    def _numpy(self, path, value):
        if hasattr(value, "bit_generator"):
            self.entries[path] = _digest(repr(value.bit_generator.state).encode())
        elif hasattr(value, "tobytes"):
            content = repr(value.tolist()) if value.dtype.hasobject else value.tobytes()
            content = content.encode() if isinstance(content, str) else content
            self.entries[path] = f"{value.shape} {value.dtype} {_digest(content)}"

    def _is_the_scripts(self, kind):
        module = sys.modules.get(kind.__module__)
        file = getattr(module, "__file__", None) or ""
        return kind.__module__ == "__main__" or os.path.abspath(file).startswith(self._folder)


def _is_run_time(name):
    return name.endswith(("_runtime", "_per_second", "_time"))


def _digest(content):
    import hashlib

    return hashlib.blake2b(content, digest_size=8).hexdigest()
