"""Recognises messages of PyTorch, transformers and datasets about dtypes, graphs, checkpoints and empty data.

The wordings are those of PyTorch 0.4 to 2.13; a comment gives the versions of those that are gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from diagnostics.collectors.shared.arrays import is_tensor
from diagnostics.facts.crash import Symptom
from diagnostics.facts.crash.usage import (
    BatchOfOneCrash,
    CheckpointKeysDiffer,
    DtypesDiffer,
    EmptyDatasetCrash,
    GraphMisused,
    MixedPrecisionMisused,
    PadTokenMissing,
)

from .frames import Crash

_DTYPES = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "long int": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "signed char": "int8",
    "byte": "uint8",
    "unsigned char": "uint8",
    "bool": "bool",
}
_NAME = r"(?:c10::|torch\.(?:cuda\.)?)?[A-Za-z]\w*(?: int| char)?"
_OPERANDS = (
    # got, wanted
    rf"must have the same dtype, but got (?P<got>{_NAME}) and (?P<wanted>{_NAME})",
    rf"expected m1 and m2 to have the same dtype, but got: (?P<got>{_NAME}) != (?P<wanted>{_NAME})",
    rf"Input type \((?P<got>{_NAME})\) and (?:weight|bias) type \((?P<wanted>{_NAME})\) should be the same",
    rf"RNN input dtype \((?P<got>{_NAME})\) does not match weight dtype \((?P<wanted>{_NAME})\)",
    rf"[Ee]xpected (?:object of )?scalar type (?P<wanted>{_NAME}) but (?:found|got scalar type) (?P<got>{_NAME})",
    rf"Expected object of type (?P<wanted>{_NAME}) but found type (?P<got>{_NAME}) for argument",  # 0.4, 1.0
    rf"Found dtype (?P<got>{_NAME}) but expected (?P<wanted>{_NAME})",
    rf"got (?P<wanted>{_NAME}) for the destination and (?P<got>{_NAME}) for the source",
    r"mat1 and mat2 must have the same dtype",  # 1.13 to 2.0
    r"mixed dtype \(C(?:PU|UDA)\): (?:all inputs must share same datatype|expect (?:parameter|input) to have)",
    r"Expected query, key, and value to have the same dtype",
    rf"has type (?P<got>{_NAME}) that does not match type (?P<wanted>{_NAME}) of argument",  # TensorFlow
    rf"was expected to be a (?P<wanted>{_NAME}) tensor but is a (?P<got>{_NAME}) tensor",
    rf"Tensor conversion requested dtype (?P<wanted>{_NAME}) for Tensor with dtype (?P<got>{_NAME})",
)
_INDICES = (
    rf"[Ee]xpected tensor for argument #1 'indices' to have (?:one of the following )?scalar types?:? [^;]*; but "
    rf"got (?P<got>{_NAME})",
    r"tensors used as indices must be long, (?:int, )?byte or bool",
)
_CLASSES = (
    rf"expected target dtype to be Long or Byte, but got (?P<got>{_NAME})",
    rf"(?i:[\"']nll_loss\w*[\"'] not implemented for) '(?P<got>{_NAME})'",
    rf"expected scalar type Long but found (?P<got>{_NAME})",
    rf"Expected object of scalar type Long but got scalar type (?P<got>{_NAME}) for argument #2 'target'",  # 1.7
)
_TARGET = (
    rf"result type (?P<wanted>{_NAME}) can't be cast to the desired output type (?P<got>Long|Int|Byte|Bool)",
)
_INTEGERS = (
    rf"mean\(\): could not infer output dtype\..* Got: (?P<got>{_NAME})",
    rf"(?i:can only calculate the mean of floating types\. got) (?P<got>{_NAME})",
    r"Only Tensors of floating point (?:and complex )?dtype can require gradients",
)
_NO_KERNEL = re.compile(rf"[\"'](?P<operation>\w+)[\"'] not implemented for '(?P<got>{_NAME})'")
_OBJECTS = (
    r"can't convert np\.ndarray of type numpy\.object_",
    r"Invalid dtype: object",
    r"Failed to convert a NumPy array to a Tensor \(Unsupported object type",
)


def _dtypes_differ(crash: Crash) -> DtypesDiffer | None:
    message = crash.facts.message
    if found := _first(_CLASSES, message):
        return DtypesDiffer("classes", _dtype(found, "got"), "int64", None, _tensors(crash))
    if found := _first(_INDICES, message):
        return DtypesDiffer("indices", _dtype(found, "got"), "int64", None, _tensors(crash))
    if found := _first(_TARGET, message):
        return DtypesDiffer("target", _dtype(found, "got"), _dtype(found, "wanted"), None, _tensors(crash))
    if found := _first(_OPERANDS, message):
        if _on_two_devices(found):
            return None
        got, wanted = _dtype(found, "got"), _dtype(found, "wanted")
        within_loss = "Found dtype" in message and got in ("int64", "int32", "uint8", "bool")
        return DtypesDiffer("target" if within_loss else "operands", got, wanted, None, _tensors(crash))
    if found := _NO_KERNEL.search(message):
        return DtypesDiffer("no kernel", _dtype(found, "got"), None, found["operation"], _tensors(crash))
    if found := _first(_INTEGERS, message):
        return DtypesDiffer("integers", _dtype(found, "got"))
    if _first(_OBJECTS, message):
        return DtypesDiffer("objects")
    return None


def _first(patterns: tuple[str, ...], message: str) -> re.Match[str] | None:
    return next((found for pattern in patterns if (found := re.search(pattern, message))), None)


def _dtype(found: re.Match[str], part: str) -> str | None:
    """Write a dtype as Python does, from C++'s name or an old tensor class: `torch.DoubleTensor` is float64."""
    name = found.groupdict().get(part)
    if name is None:
        return None
    plain = name.rpartition(".")[2].rpartition(":")[2].removesuffix("Tensor").lower()
    return _DTYPES.get(plain, plain)


def _on_two_devices(found: re.Match[str]) -> bool:
    """Whether the message names tensor classes of which one is of CUDA: then the devices differ."""
    names = [name for part in ("got", "wanted") if (name := found.groupdict().get(part))]
    return len({"cuda" in name for name in names}) == 2 and all("Tensor" in name for name in names)


def _tensors(crash: Crash) -> dict[str, str]:
    """Return dtypes by name, from the innermost frame that holds tensors of different dtypes."""
    for variables in crash.inward():
        named = {name: str(value.dtype) for name, value in variables.items() if is_tensor(value)}
        for name, parameter in getattr(variables.get("self"), "_parameters", {}).items():
            if parameter is not None:
                named[f"self.{name}"] = str(parameter.dtype)
        if len(set(named.values())) > 1:
            return {name: dtype.removeprefix("torch.") for name, dtype in named.items()}
    return {}


_OVERWRITTEN = re.compile(
    r"modified by an inplace operation(?:: \[\S+ \[(?P<shape>[\d, ]*)\]\](?:, which is output \d+ "
    r"of (?P<of>[\w:]+))?)?"
)
_GRAPHS = (
    ("second backward", r"Trying to backward through the graph a second time"),
    ("second backward", r"A non-persistent GradientTape can only be used to compute one set of gradients"),
    (
        "leaf changed",
        r"a (?:view of a )?leaf Variable that requires grad (?:is being|has been) used in an in-place",
    ),
    ("leaf changed", r"leaf variable has been moved into the graph interior"),
    ("not a scalar", r"grad can be implicitly created only for scalar outputs"),
    ("not detached", r"Can't call numpy\(\) on (?:Tensor|Variable) that requires grad"),
    ("not a leaf", r"can't optimize a non-leaf (?:Tensor|Variable)"),
)


def _graph_misused(crash: Crash) -> GraphMisused | None:
    message = crash.facts.message
    if found := _OVERWRITTEN.search(message):
        shape = None if found["shape"] is None else tuple(int(n) for n in found["shape"].split(",") if n.strip())
        operation = None if found["of"] is None else found["of"].rpartition("::")[2]
        return GraphMisused("changed in place", operation, shape)
    return next((GraphMisused(kind) for kind, pattern in _GRAPHS if re.search(pattern, message)), None)  # type: ignore[arg-type]


_LISTED_KEYS = r"{} key\(s\) in state_dict:((?:\s*\"[^\"]+\",?)+)"
_OPTIMIZER_STATE = (
    r"loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
    r"loaded state dict has a different number of parameter groups",
)


def _checkpoint_keys_differ(crash: Crash) -> CheckpointKeysDiffer | None:
    message = crash.facts.message
    if _first(_OPTIMIZER_STATE, message):
        return CheckpointKeysDiffer(of_optimizer=True)
    model = re.search(r"Error\(s\) in loading state_dict for (\w+)", message)
    lists = [re.search(_LISTED_KEYS.format(kind), message) for kind in ("Missing", "Unexpected")]
    missing, unexpected = (tuple(re.findall(r'"([^"]+)"', found[1])) if found else () for found in lists)
    if not missing and not unexpected:
        old = re.search(r"unexpected key \"([^\"]+)\" in state_dict|missing keys? in state_dict: (.*)", message)
        if old is None:
            return None
        unexpected = (old[1],) if old[1] else ()
        missing = tuple(re.findall(r"['\"]([\w.]+)['\"]", old[2] or ""))
    return CheckpointKeysDiffer("" if model is None else model[1], missing, unexpected)


def _batch_of_one(crash: Crash) -> BatchOfOneCrash | None:
    found = re.search(
        r"Expected more than 1 value per channel when training(?:, got input size "
        r"(?:torch\.Size\()?\[([\d, ]+)\])?",
        crash.facts.message,
    )
    if found is None:
        return None
    return BatchOfOneCrash(None if found[1] is None else tuple(int(size) for size in found[1].split(",")))


_MIXED_PRECISION = (
    ("half parameters", r"Attempting to unscale FP16 gradients"),
    ("nothing scaled", r"No inf checks were recorded for this optimizer|Attempted (?:un)?\w+ but _scale is None"),
    ("twice", r"(?:unscale_|step)\(\) has already been called(?: on this optimizer)? since the last update\(\)"),
    ("twice", r"unscale_\(\) is being called after step\(\)"),
    ("unsafe loss", r"binary_cross_entropy and torch\.nn\.BCELoss are unsafe to autocast"),
)


def _mixed_precision_misused(crash: Crash) -> MixedPrecisionMisused | None:
    message = crash.facts.message
    return next((MixedPrecisionMisused(k) for k, pattern in _MIXED_PRECISION if re.search(pattern, message)), None)  # type: ignore[arg-type]


def _empty_dataset(crash: Crash) -> EmptyDatasetCrash | None:
    found = re.search(
        r"Invalid key: (?P<key>\d+) is out of bounds for size 0"
        r"|Index (?P<index>\d+) out of range for dataset of size 0"
        r"|num_samples should be a positive integer value, but got num_samples=0",
        crash.facts.message,
    )
    if found is None:
        return None
    index = found["key"] or found["index"]
    by_trainer = any(frame.file.endswith("transformers/trainer.py") for frame in crash.facts.frames)
    return EmptyDatasetCrash(None if index is None else int(index), by_trainer)


def _pad_token_missing(crash: Crash) -> PadTokenMissing | None:
    message = crash.facts.message
    if re.search(r"Cannot handle batch sizes > 1 if no padding token is defined", message):
        return PadTokenMissing(of_model=True)
    if re.search(r"Asking to pad but the tokenizer does not have a padding token", message):
        return PadTokenMissing()
    return None


RECOGNISERS: tuple[Callable[[Crash], Symptom | None], ...] = (
    _dtypes_differ,
    _graph_misused,
    _checkpoint_keys_differ,
    _batch_of_one,
    _mixed_precision_misused,
    _empty_dataset,
    _pad_token_missing,
)
