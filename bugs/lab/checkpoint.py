"""The checkpoint that the exhibits start from: a small DistilBERT without a head, and its tokenizer.

It is pre-trained on nothing: its weights are as initialised, so what a script's model knows, the script has taught
it. But for that, its size and its missing dropout, it is what `distilbert-base-uncased` is: the same architecture,
the same kind of vocabulary, the same files in the directory, read by `transformers` and by KerasHub alike. With
the environment variable `ZOO_MODEL` set to a model's name or directory, that one is used instead.
"""

import collections
import itertools
import os
import re
import string
from pathlib import Path

from bugs.lab.cache import LabError, built
from bugs.lab.corpus import SIZES
from bugs.lab.corpus import VERSION as CORPUS_VERSION

VERSION = 3  # raise it when the files change: the cache keeps one directory a version

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")  # in this order: padding is id 0, as in BERT
ENDINGS = ("ing", "ed", "er", "ers", "est", "ly", "es", "al", "en", "ist", "man", "men", "ion", "le", "or", "th")
RARE = 12  # a word that the corpus holds less often than this is left out, and splits into pieces
WIDTH, LAYERS = 64, 2
SPREAD = 0.02  # of the initial weights at DistilBERT's width of 768; a smaller width takes larger weights
DROPOUT = 0.0  # one pass over the corpus does not overfit, and half as many steps are needed without
SEED = 0


def checkpoint(width: int = WIDTH, layers: int = LAYERS) -> str:
    """What to hand to `from_pretrained`: `ZOO_MODEL` if set, else the directory of a small checkpoint.

    Args:
        width: of the hidden states, a multiple of 64 (the size of a head).
        layers: of the encoder.

    Raises:
        LabError: `ZOO_MODEL` is a path without a model, or the cache cannot be written.
    """
    named = os.environ.get("ZOO_MODEL")
    if not named:
        tiny = (width, layers) == (WIDTH, LAYERS)
        size, what = ("", "the tiny checkpoint") if tiny else (f"-{width}x{layers}", f"a checkpoint {width} wide")
        return str(built(f"checkpoint-{VERSION}{size}", what, lambda directory: save(directory, width, layers)))
    return named_model("ZOO_MODEL", named, "distilbert-base-uncased")


def named_model(variable: str, named: str, example: str) -> str:
    """Return what an environment variable names, for `from_pretrained`: a directory or a name on the hub.

    Args:
        variable: of the environment.
        named: its value, not empty.
        example: a name on the hub that would do.

    Raises:
        LabError: it is a path without a model.
    """
    path = Path(named).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise LabError(f"{variable}={named}: that directory holds no model, for it has no config.json.")
        return str(path)
    if named.startswith(("/", ".", "~")):
        raise LabError(
            f"{variable}={named}: there is no such directory. Give a directory written by save_pretrained, a name "
            f"on the Hugging Face hub ({example}), or unset it to use the zoo's own checkpoint."
        )
    return named


def preset(checkpoint: str) -> str:
    """The same checkpoint as KerasHub has it named: a directory as it is, a name on the hub after `hf://`."""
    return checkpoint if Path(checkpoint).is_dir() or "://" in checkpoint else f"hf://{checkpoint}"


def vocabulary() -> list[str]:
    """The tokenizer's pieces in the order of their ids.

    The words of the corpus but for the rare ones, which split into pieces as unusual words do in real text. Every
    lower-case Latin letter and digit is there, alone and as a continuation, so that no such word is unknown.
    """
    from bugs.lab.sentences.pairs import pairs

    premises = sum(SIZES.values()) // 3
    text = (
        pair.premise + " " + pair.hypothesis
        for triple in itertools.islice(pairs(seed=CORPUS_VERSION), premises)
        for pair in triple
    )
    words = collections.Counter(word for line in text for word in re.findall("[a-z]{2,}", line.lower()))
    frequent = sorted(word for word, count in words.items() if count >= RARE)
    letters = string.digits + string.ascii_lowercase
    pieces = [f"##{piece}" for piece in (*letters, *ENDINGS)]
    return [*SPECIAL, *string.punctuation, *letters, *pieces, *frequent]


def save(directory: Path, width: int = WIDTH, layers: int = LAYERS) -> None:
    """Write configuration, weights and tokenizer, the same bytes each time."""
    import torch
    from safetensors.torch import save_file
    from transformers import DistilBertConfig, DistilBertModel, DistilBertTokenizer

    pieces = vocabulary()
    config = DistilBertConfig(
        vocab_size=len(pieces),
        dim=width,
        hidden_dim=2 * width,
        n_layers=layers,
        n_heads=max(2, width // 64),
        pad_token_id=0,
        initializer_range=round(SPREAD * (768 / width) ** 0.5, 2),
        dropout=DROPOUT,
        attention_dropout=DROPOUT,
        seq_classif_dropout=DROPOUT,
    )
    with torch.random.fork_rng(devices=[]):  # the caller's random numbers are none of our business
        torch.manual_seed(SEED)
        weights = DistilBertModel(config).state_dict()
    # under the names that distilbert-base-uncased has them; KerasHub knows no others
    named = {f"distilbert.{name}": weight for name, weight in weights.items()}
    save_file(named, directory / "model.safetensors", metadata={"format": "pt"})
    config.architectures = [DistilBertModel.__name__]
    config.save_pretrained(directory)
    vocabulary_file = directory / "vocab.txt"  # KerasHub reads this one, transformers tokenizer.json
    vocabulary_file.write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8", newline="\n")
    tokenizer = DistilBertTokenizer(
        vocab={piece: number for number, piece in enumerate(pieces)},
        do_lower_case=True,
        model_max_length=config.max_position_embeddings,
    )
    tokenizer.save_pretrained(directory)
