"""Finds the vocabulary that a batch was encoded with, and the normalisation of its images. Calls no user code."""

from __future__ import annotations

import contextlib
import gc
import itertools
import operator
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from diagnostics.collectors.isolation.rng import objects_within
from diagnostics.facts.array import Array
from diagnostics.facts.frozen import frozen
from diagnostics.facts.where import is_user_code

FRAMES = 64  # of a stack whose global variables are looked at
VARIABLES = 1_000  # of a module
KINDS = (
    ("transformers.tokenization_utils_base", "PreTrainedTokenizerBase"),
    ("keras", "layers.TextVectorization"),
)
LEAST_WORDS = 4  # of a dict that is taken for a vocabulary
UNKNOWN = ("<unk>", "[UNK]", "<UNK>", "<oov>", "<OOV>", "[OOV]")
PADDING = ("<pad>", "[PAD]", "<PAD>", "")
NO_WORD = (
    "pad",
    "unk",
    "none",
    "null",
    "blank",
    "mask",
    "oov",
    "empty",
)  # part of a key that may be a special token
SPECIAL = ("<s>", "</s>", "<bos>", "<eos>", "<BOS>", "<EOS>", "[CLS]", "[SEP]", "<cls>", "<sep>", "[MASK]")


class Words:
    """A vocabulary with the interface of a tokenizer, as far as `token_facts` asks for it.

    Args:
        ids: by word.
        name: of its kind.
    """

    def __init__(self, ids: dict[Any, Any], name: str) -> None:
        self.name, self.size = name, len(ids)
        self._words = {id: str(word) for word, id in ids.items()}
        self.unk_token_id = next((ids[word] for word in UNKNOWN if word in ids), None)
        self.pad_token_id = next((ids[word] for word in PADDING if word in ids), None)
        named = (self.unk_token_id, self.pad_token_id, *(ids[word] for word in SPECIAL if word in ids))
        self.all_special_ids = [id for id in named if id is not None]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the words of some ids, joined by spaces."""
        return " ".join(self._words.get(id, str(id)) for id in ids)


def tokenizer_in(*roots: Any) -> Any:
    """Return what encodes texts among the objects that make batches, or else in the script.

    Args:
        roots: loaders, datasets, collators.

    Returns:
        A tokenizer of transformers, or `Words`. None if nothing was found, or if several were found that disagree
        on the id of the unknown token: any of them may have encoded the batch.
    """
    for values in (objects_within(*roots), _globals(), _living()):
        found = [tokenizer for value in values if (tokenizer := _tokenizer(value)) is not None]
        if found:
            return found[0] if len({one.unk_token_id for one in found}) == 1 else None
    return None


def first_words(*roots: Any) -> dict[int, str]:
    """Return the word with id 0 of each dict that numbers words from 0 without gaps, by the size of the dict.

    Args:
        roots: loaders, datasets, collators; the script's global variables are looked at, too.
    """
    found: dict[int, set[str]] = {}
    for value in itertools.chain(objects_within(*roots), _globals()):
        if type(value) is not dict or len(value) < LEAST_WORDS or {*map(type, value)} != {str}:
            continue
        if {*map(type, value.values())} == {int} and set(value.values()) == set(range(len(value))):
            found.setdefault(len(value), set()).add(min(value, key=lambda word: value[word]))
    return {size: min(words) for size, words in found.items() if len(words) == 1 and _is_word(min(words))}


def _is_word(key: str) -> bool:
    return key[:1].isalnum() and not any(part in key.lower() for part in NO_WORD)


def name_of_tokenizer(tokenizer: Any) -> str:
    """Name the kind of a vocabulary."""
    return tokenizer.name if isinstance(tokenizer, Words) else type(tokenizer).__name__


def has_several_meanings(tokenizer: Any) -> bool:
    """Return whether the unknown token also pads, starts or ends texts, as GPT-2's does."""
    names = ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")
    return any(getattr(tokenizer, name, None) == tokenizer.unk_token_id for name in names)


def size_of_vocabulary(tokenizer: Any) -> int | None:
    """Return the number of words; None if it is not known."""
    size = getattr(tokenizer, "size" if isinstance(tokenizer, Words) else "vocab_size", None)
    return size if isinstance(size, int) else None


def text_of_token(tokenizer: Any, id: int) -> str:
    """Decode one token; an id that the vocabulary lacks stays a number."""
    try:
        return str(tokenizer.decode([id]))
    except Exception:
        return str(id)


def words_of(ids: Iterable[int]) -> dict[int, str]:
    """Return tokens as the script's tokenizers of transformers decode them; none if these disagree."""
    wanted = list(ids)
    base = getattr(sys.modules.get(KINDS[0][0]), KINDS[0][1], ())
    tokenizers = [value for value in _living() if isinstance(value, base)]
    found = [{id: text_of_token(tokenizer, id) for id in wanted} for tokenizer in tokenizers]
    return found[0] if found and all(words == found[0] for words in found) else {}


def _tokenizer(value: Any) -> Any:
    if type(value) is dict:
        known = len(value) >= LEAST_WORDS and any(type(value.get(word)) is int for word in UNKNOWN)
        are_ids = known and all(type(key) is str and type(id) is int for key, id in value.items())
        return Words(value, "a dict") if are_ids else None
    for base in type(value).__mro__:
        module, name = base.__module__.partition(".")[0], base.__name__
        if module == "transformers" and name == "PreTrainedTokenizerBase":
            return value if isinstance(getattr(value, "unk_token_id", None), int) else None
        if module == "tokenizers" and name == "Tokenizer":
            return _of_known_words(value.get_vocab(), name)
        if module == "keras" and name == "TextVectorization" and getattr(value, "_output_mode", "") == "int":
            return _of_known_words({word: id for id, word in enumerate(value.get_vocabulary())}, name)
    return None


def _of_known_words(ids: dict[str, int], name: str) -> Words | None:
    words = Words(ids, name)
    return None if words.unk_token_id is None else words


def _globals() -> Iterator[Any]:
    """Yield the global variables of the script's functions that are running, the innermost first.

    Not their local ones: up to Python 3.12, to read `f_locals` keeps all of them alive until the function returns.
    """
    frame: Any = sys._getframe(1)
    seen = set[int]()
    for _ in range(FRAMES):
        if frame is None:
            return
        names = frame.f_globals
        if id(names) not in seen and is_user_code(frame.f_code.co_filename):
            seen.add(id(names))
            yield from list(names.values())[:VARIABLES]
        frame = frame.f_back


def _living() -> Iterator[Any]:
    """Yield the tokenizers and layers that may be local variables, wherever they are."""
    kinds: list[type] = []
    for home, path in KINDS:
        if home in sys.modules:
            with contextlib.suppress(AttributeError):  # imported in part
                kinds.append(operator.attrgetter(path)(sys.modules[home]))
    for kind in kinds:  # grows
        kinds += type.__subclasses__(kind)
    if wanted := {id(kind) for kind in kinds}:  # each object refers to its class
        yield from [value for value in gc.get_referrers(*kinds) if id(type(value)) in wanted]


@frozen
class Scaling:
    """A step that made images ``(x - shift) / scale``.

    Attributes:
        shift: (channels,), or one number.
        scale: likewise.
        name: of the step, with its settings.
    """

    shift: Array
    scale: Array
    name: str


def scalings_in(*roots: Any) -> tuple[Scaling, ...]:
    """Return the normalisations among the objects that make batches, in the order in which they are applied."""
    found: list[Scaling] = []
    for value in objects_within(*roots):
        used: list[Any] = [value]
        if isinstance(value, FunctionType):
            used = [value.__globals__.get(name) for name in value.__code__.co_names]
        for one in used:
            if (scaling := _scaling(one)) is not None and all(scaling.name != other.name for other in found):
                found.append(scaling)
    return tuple(found)


def _scaling(value: Any) -> Scaling | None:
    """Recognise a `Normalize` with mean and std, as torchvision's, and Keras' `Rescaling` and `Normalization`."""
    kind, module = type(value).__name__, type(value).__module__.partition(".")[0]
    if kind == "Normalize":
        shift, scale = _numbers(getattr(value, "mean", None)), _numbers(getattr(value, "std", None))
    elif module == "keras" and kind == "Rescaling":
        factor, offset = _numbers(getattr(value, "scale", None)), _numbers(getattr(value, "offset", None))
        if factor is None or offset is None or not factor.all():
            return None
        shift, scale = -offset / factor, 1 / factor
    elif module == "keras" and kind == "Normalization":
        shift = _numbers(getattr(value, "mean", None))
        variance = _numbers(getattr(value, "variance", None))
        scale = None if variance is None else np.sqrt(variance)
    else:
        return None
    if shift is None or scale is None or not scale.all():
        return None
    return Scaling(shift, scale, f"{kind}, mean {_listed(shift)}, std {_listed(scale)}")


def _numbers(value: Any) -> Array | None:
    try:
        array = np.asarray(value, dtype=np.float32).reshape(-1)
    except Exception:  # a layer that is not built
        return None
    return array if 0 < array.size <= 4 and bool(np.isfinite(array).all()) else None


def _listed(values: Array) -> str:
    return ", ".join(f"{value:.4g}" for value in values.tolist())
