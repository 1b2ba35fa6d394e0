"""See `CheckpointKeysMismatch`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, NotApplicable, check
from diagnostics.facts.calls import LoadedKeys, ObjectLedger
from diagnostics.facts.crash import CheckpointKeysDiffer, CrashFacts
from diagnostics.text.join import count_of, listed

MAX_SHARE_BY_CHANCE = 0.1  # share of the model's keys found; a bias or a buffer may have the same name by chance
MOST_TRIED = 200  # keys, in the search for a prefix
MAX_KEYS_NAMED = 4  # in the message; the evidence holds them all
WRAPPERS = {  # wrappers that add a prefix to every key
    "module.": "DataParallel or DistributedDataParallel",
    "_orig_mod.": "torch.compile",
    "model.": "a LightningModule that holds the model as self.model",
    "net.": "a module that holds the model as self.net",
}
_SHORTENED = re.compile(r"\.{3}|\N{HORIZONTAL ELLIPSIS}")  # shortened by the user: PyTorch lists every key
HOLD_WEIGHTS = (
    "state_dict", "model_state_dict", "model_state", "model", "module", "net", "network", "weights", "params",
    "ema", "model_ema", "ema_state_dict", "teacher", "student", "encoder", "backbone", "generator", "G", "g_ema",
)  # fmt: skip
"""Names under which training scripts store the weights, the usual first."""
BESIDE_WEIGHTS = {
    "arch", "args", "best_acc", "best_acc1", "best_loss", "best_score", "cfg", "config", "epoch", "global_step",
    "hparams", "hyper_parameters", "iter", "iteration", "loss", "lr_scheduler", "meta", "opt", "optimizer",
    "optimizer_state", "optimizer_state_dict", "rng_state", "scaler", "scheduler", "scheduler_state_dict", "step",
}  # fmt: skip
"""Names of what they store beside the weights."""


class CheckpointKeysMismatch(MessageRule):
    """The keys of a checkpoint differ from those of the model.

    ## What it does
    Compares the missing and the unexpected keys in the error message. Names a prefix that would make the keys
    match, a state dict inside the checkpoint, or the layers that differ. In a watched run, the rule also checks
    `load_state_dict(..., strict=False)`: it reports a call that found hardly any of the model's keys if the model
    is then trained, or evaluated with the missing weights unchanged.

    In PyTorch, it also compares a model that is evaluated after loading with the trained model of the same class.
    Weights that were trained, but still have their initial values after loading, were not saved.

    ## Why it is bad
    `load_state_dict` matches weights by name. `DataParallel` and `DistributedDataParallel` put `module.` in front
    of every name, and `torch.compile` puts `_orig_mod.` there. If a checkpoint with such names is loaded into the
    plain model, none of the keys match. PEFT omits the adapter's name from the keys that it saves, and saves only
    the adapter and `modules_to_save`, not a head that you unfroze. `strict=False` silences the error and leaves
    every unmatched weight at its initial value. `from_pretrained` does the same, with a warning.

    ## Example
    ```python
    torch.save(ddp_model.state_dict(), "best.pt")        # module.encoder.weight, ...
    model.load_state_dict(torch.load("best.pt"))         # encoder.weight, ...
    ```

    ## Instead
    ```python
    torch.save(ddp_model.module.state_dict(), "best.pt")
    model.load_state_dict(torch.load("best.pt"))
    ```

    ## Thresholds
    If loading failed, there is no threshold. With `strict=False`, one of two conditions must hold:

    - The checkpoint contains fewer than 10% of the model's keys, and at least as many keys that the model does not
      have.
    - At least half of the model's keys are missing, and adding or removing a prefix makes the keys match.

    Weights are reported as not saved if at least one other trained matrix is identical in the evaluated and the
    trained model, which shows that the evaluated model was loaded from this run. The reported matrix itself must
    have at least 64 weights, must be unchanged since loading, and must be unrelated to the trained one: their
    correlation must be less than five times the standard deviation of the correlation between random matrices.

    ## Known problems
    Some old error messages name only the first key, so the rule knows only that key. Weights that were not saved
    are found only while the trained model is in memory, and not after training with a `Trainer`.

    ## Sources
    The documentation for `torch.nn.Module.load_state_dict`, and PyTorch's tutorial "Saving and loading models"
    ("Saving torch.nn.DataParallel models").
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: CheckpointKeysDiffer) -> Finding | None:
        """Find the prefix that makes the keys match, or name the keys that differ."""
        if symptom.missing and not symptom.unexpected and _SHORTENED.search(crash.message):
            seen, fix = _of_half(symptom)
        else:
            seen, fix = _of_model(symptom, in_part=True)
        return self.found(
            seen,
            fix=fix,
            evidence={
                "model": symptom.model,
                "missing": list(symptom.missing),
                "unexpected": list(symptom.unexpected),
                "prefix": prefix_of(symptom, in_part=True),
            },
            where=crash.where,
        )

    @check
    def from_load(self, loaded: LoadedKeys) -> Finding | None:
        """Look for a load with `strict=False` that loaded next to nothing."""
        symptom = CheckpointKeysDiffer(loaded.model, loaded.missing, loaded.unexpected)
        few = loaded.loaded < MAX_SHARE_BY_CHANCE * loaded.keys and len(loaded.unexpected) >= loaded.loaded
        prefix = prefix_of(symptom)
        if not few and (prefix is None or len(loaded.missing) * 2 < loaded.keys):
            return None
        seen, fix = _of_model(symptom, strict=False)
        got = "loaded nothing" if not loaded.loaded else f"loaded little: {loaded.loaded} keys match"
        none = "none" if len(loaded.missing) == loaded.keys else f"only {loaded.keys - len(loaded.missing)}"
        then = (
            "The model trains from random initial weights."
            if loaded.trained
            else "The script then evaluates the model with the weights it had before the load."
        )
        return self.found(
            f"`load_state_dict(..., strict=False)` {got}: the checkpoint has {none} of the {loaded.keys} keys of "
            f"{loaded.model}. {seen} {then}",
            fix=(*((fix,) if isinstance(fix, str) else fix), "print what load_state_dict returns"),
            evidence={
                "model": loaded.model,
                "missing": list(loaded.missing),
                "unexpected": list(loaded.unexpected),
                "loaded": loaded.loaded,
                "prefix": prefix,
            },
            where=loaded.where,
            severity="warning",
        )

    @check
    def from_objects(self, ledger: ObjectLedger) -> Finding:
        """Report trained weights that an evaluated model lacks, while it has others of the same training."""
        if not ledger.lost:
            raise NotApplicable
        names, weights = list(ledger.lost), sum(ledger.lost.values())
        parts = list(dict.fromkeys(name.split(".")[-2] if "." in name else name for name in names))
        keep = f"LoraConfig(..., modules_to_save=[{', '.join(map(repr, parts))}])  # saved with the adapter"
        return self.found(
            f"{listed(names, most=MAX_KEYS_NAMED)} ({weights:,} weights) {'was' if len(names) == 1 else 'were'} "
            f"trained, but {'is' if len(names) == 1 else 'are'} random in the evaluated {ledger.name}. "
            f"Loading the checkpoint left {'it at its' if len(names) == 1 else 'them at their'} initial values, "
            f"although {count_of(ledger.restored, 'other trained matrix', 'other trained matrices')} "
            f"{'was' if ledger.restored == 1 else 'were'} loaded: the checkpoint holds only part of the trained "
            "weights.",
            fix=(
                *((keep,) if ledger.name.startswith("Peft") else ()),
                "save all weights: torch.save(model.state_dict(), path), or model.save_pretrained(folder)",
            ),
            evidence={
                "model": ledger.name,
                "lost": dict(ledger.lost),
                "restored": ledger.restored,
                "cause": "not saved",
            },
            severity="warning",
        )


def prefix_of(symptom: CheckpointKeysDiffer, in_part: bool = False) -> str | None:
    """Return the prefix that unexpected keys have before the missing ones; ``-PREFIX`` if the model has it.

    Args:
        symptom: the keys that differ.
        in_part: whether the checkpoint may also hold other parts, without that prefix.
    """
    missing, unexpected = set(symptom.missing), set(symptom.unexpected)
    for keys, others, sign in ((unexpected, missing, ""), (missing, unexpected, "-")):
        for prefix in ("module.", "_orig_mod.") if keys and not others else ():  # the other half was cut off
            if all(key.startswith(prefix) for key in keys):
                return sign + prefix
    for longer, shorter, sign in ((unexpected, missing, ""), (missing, unexpected, "-")):
        for key in sorted(longer)[:MOST_TRIED] if shorter else ():
            ends = [end for end in shorter if key.endswith("." + end)]
            for end in sorted(ends, key=len):
                prefix = key.removesuffix(end)
                stripped = {name.removeprefix(prefix) for name in longer if name.startswith(prefix)}
                is_part = in_part and not sign and len(shorter) > 1 and shorter <= stripped
                if is_part or len(stripped & shorter) * 2 > max(len(longer), len(shorter)):
                    return sign + prefix
    return None


def renamed_part(symptom: CheckpointKeysDiffer) -> tuple[str, str] | None:
    """Return the first part of the checkpoint's keys and of the model's, if they differ in nothing else.

    More than half of the model's missing keys must agree, and more than one: the last part of a name, such as
    ``weight``, is found in any model.
    """
    missing, unexpected = set(symptom.missing), set(symptom.unexpected)
    for wanted in sorted(missing)[:MOST_TRIED]:
        theirs, _, rest = wanted.partition(".")
        for key in sorted(key for key in unexpected if rest and key.endswith(f".{rest}")):
            ours, theirs_with_dot = key.removesuffix(rest), f"{theirs}."
            same = {name.removeprefix(ours) for name in unexpected if name.startswith(ours)} & {
                name.removeprefix(theirs_with_dot) for name in missing if name.startswith(theirs_with_dot)
            }
            if len(same) > 1 and 2 * len(same) > len(missing):
                return ours, theirs_with_dot
    return None


def inserted_part(symptom: CheckpointKeysDiffer) -> str | None:
    """Return the part that missing keys have inside and the unexpected ones lack; ``-PART`` if those have it.

    More than half of the shorter keys must become one of the longer ones with it, and more than one.
    """
    missing, unexpected = set(symptom.missing), set(symptom.unexpected)
    for longer, shorter, sign in ((missing, unexpected, ""), (unexpected, missing, "-")):
        for key in sorted(shorter)[:2]:
            parts = key.split(".")
            for place in range(1, len(parts)):
                begin, end = f"{'.'.join(parts[:place])}.", f".{'.'.join(parts[place:])}"
                size = len(begin) + len(end)
                inner = {one[len(begin) : -len(end)] for one in longer if len(one) > size}
                for part in sorted(one for one in inner if f"{begin}{one}{end}" in longer)[:2]:
                    without = {one.replace(f".{part}.", ".", 1) for one in longer if f".{part}." in one}
                    if len(without & shorter) > 1 and 2 * len(without & shorter) > len(shorter):
                        return sign + part
    return None


def divided(missing: Sequence[str], unexpected: Sequence[str]) -> str | None:
    """Return the layer that the checkpoint replaces by several, if that explains every missing key."""
    layers = {key.rpartition(".")[0] for key in missing}
    inside = re.compile("|".join(rf"{re.escape(layer)}\.\d+\." for layer in layers)) if layers else None
    if inside is None or not all(inside.match(key) for key in unexpected) or len(layers) != 1:
        return None
    return layers.pop() if unexpected else None


def renumbered(symptom: CheckpointKeysDiffer) -> bool:
    """Return whether missing and unexpected keys differ only in the numbers of layers."""
    missing, unexpected = (
        Counter(re.sub(r"(?<=\.)\d+(?=\.)", "#", key) for key in keys)
        for keys in (symptom.missing, symptom.unexpected)
    )
    return bool(missing) and missing == unexpected


def _of_half(symptom: CheckpointKeysDiffer) -> tuple[str, Fix]:
    """Report what a shortened message leaves open: the checkpoint's own names are not known."""
    model = symptom.model or "The model"
    return (
        f"{model} has keys that the checkpoint lacks, such as {listed(symptom.missing, most=MAX_KEYS_NAMED)}; "
        "the error message was shortened and does not show the checkpoint's own keys. If the names differ only in "
        "a prefix such as 'module.', then either this model or the saved one is wrapped, for example in "
        "DataParallel.",
        (
            "print(list(state)[:3], list(model.state_dict())[:3]) to see how the names differ",
            "wrap the model before load_state_dict, if it was wrapped when it was saved: model = "
            "DataParallel(model)",
            "state = {key.removeprefix('module.'): value for key, value in state.items()}",
            "if the names have nothing in common, build the model with the arguments used to train the checkpoint",
        ),
    )


def is_container(symptom: CheckpointKeysDiffer) -> bool:
    """Return whether the checkpoint's keys are those of a file that stores the weights under a name.

    Weights have a dot in their names, except for the model's own parameters; those of a file have none.
    """
    names = set(symptom.unexpected)
    if not names or any("." in name for name in names):
        return False
    known = {*HOLD_WEIGHTS, *BESIDE_WEIGHTS}
    return names <= known or bool(names & BESIDE_WEIGHTS and any("." in key for key in symptom.missing))


def _of_inserted(symptom: CheckpointKeysDiffer, part: str, model: str) -> tuple[str, Fix]:
    """Report keys that differ by a part inside them, such as the name of an adapter."""
    name, longer = part.removeprefix("-"), symptom.unexpected if part.startswith("-") else symptom.missing
    example = next(key for key in sorted(longer) if f".{name}." in key)
    owner = "the checkpoint" if part.startswith("-") else model
    by = f" (added by {WRAPPERS[f'{name}.']})" if name in ("module", "_orig_mod") else ""
    seen = (
        f"The keys of {owner} contain {name!r}{by}, as in {example}; those of "
        f"{model if part.startswith('-') else 'the checkpoint'} are the same without it."
    )
    renaming = (
        f"state = {{key.replace('.{name}.', '.', 1): value for key, value in state.items()}}"
        if part.startswith("-")
        else f"insert '.{name}' into the checkpoint's keys, so that they read {example}"
    )
    if "lora_" in example:
        return seen, (
            "peft.set_peft_model_state_dict(model, state)  # adds the adapter's name to the keys",
            "PeftModel.from_pretrained(base, folder)  # builds the adapter and loads it",
        )
    return seen, renaming


def _of_container(symptom: CheckpointKeysDiffer) -> tuple[str, Fix]:
    seen = (
        f"The checkpoint is not a state dict but contains one: its keys are {listed(symptom.unexpected, most=6)}."
    )
    inner = next((name for name in HOLD_WEIGHTS if name in symptom.unexpected), None)
    show = (
        "run print({key: type(value) for key, value in checkpoint.items()}), and load the dict that holds the "
        "weights"
    )
    if inner is None:
        return seen, show
    return seen, (f"model.load_state_dict(checkpoint[{inner!r}])", f"if keys still differ, {show}")


def _of_model(symptom: CheckpointKeysDiffer, in_part: bool = False, strict: bool = True) -> tuple[str, Fix]:
    prefix, model = prefix_of(symptom, in_part), symptom.model or "the model"
    if prefix is not None and not prefix.startswith("-"):
        by = f" (added by {WRAPPERS[prefix]})" if prefix in WRAPPERS else ""
        if others := [key for key in symptom.unexpected if not key.startswith(prefix)]:
            return (
                f"The checkpoint has the keys of {model} with the prefix {prefix!r}{by}, plus "
                f"{count_of(len(others), 'key')} of other parts, such as {others[0]}.",
                f"state = {{key.removeprefix({prefix!r}): value for key, value in state.items() "
                f"if key.startswith({prefix!r})}}",
            )
        return (
            f"Every checkpoint key begins with {prefix!r}{by}, but the keys of {model} do not.",
            (
                f"state = {{key.removeprefix({prefix!r}): value for key, value in state.items()}}",
                "save the inner model next time: wrapped.module.state_dict()"
                if prefix == "module."
                else "save the state of the inner model next time",
            ),
        )
    if prefix is not None:
        by = f" (added by {WRAPPERS[prefix[1:]]})" if prefix[1:] in WRAPPERS else ""
        return (
            f"The keys of {model} begin with {prefix[1:]!r}{by}, but the checkpoint's keys do not.",
            (
                f"load into the inner model: {model_attribute(prefix[1:])}.load_state_dict(state)",
                f"state = {{{prefix[1:]!r} + key: value for key, value in state.items()}}",
            ),
        )
    if (parts := renamed_part(symptom)) is not None:
        ours, theirs = parts
        same = [key for key in symptom.missing if key.startswith(theirs)]
        return (
            f"{count_of(len(same), 'key')} of {model} begin with {theirs!r} where the checkpoint's keys "
            f"begin with {ours!r}; otherwise the names are the same.",
            f"state = {{key.replace({ours!r}, {theirs!r}, 1): value for key, value in state.items()}}",
        )
    if is_container(symptom):
        return _of_container(symptom)
    if (part := inserted_part(symptom)) is not None:
        return _of_inserted(symptom, part, model)
    differences = []
    if symptom.missing:
        differences.append(
            f"{model} has {count_of(len(symptom.missing), 'key')} that the checkpoint lacks "
            f"({listed(symptom.missing, most=MAX_KEYS_NAMED)})"
        )
    if symptom.unexpected:
        differences.append(
            f"the checkpoint has {count_of(len(symptom.unexpected), 'key')} that {model} lacks "
            f"({listed(symptom.unexpected, most=MAX_KEYS_NAMED)})"
        )
    sentence = "; ".join(differences)
    if layer := divided(symptom.missing, symptom.unexpected):
        return (
            f"{sentence[:1].upper()}{sentence[1:]}. The checkpoint has several layers in a row where the model "
            f"has one, {layer}: it was saved from a different class of the same name.",
            (
                "build the model with the code that was published with the checkpoint, and with the library "
                "versions that this code requires or bundles (for example, its own copy of timm)",
            ),
        )
    if renumbered(symptom):
        return (
            f"{sentence[:1].upper()}{sentence[1:]}. The names differ only in their numbers: the same layers "
            "are at different positions. Either a different release of the library is installed, or a "
            "layer before them was added or removed.",
            (
                "compare the version shown by python -m pip show timm (or the library that builds the model) "
                "with the version that saved the checkpoint; timm 0.9 moved Swin's downsample to the next layer",
                "rename the keys in the state dict, if a layer was added or removed",
            ),
        )
    build = "build the model with the arguments used to train the checkpoint"
    in_part_only = (
        "model.load_state_dict(state, strict=False), if the checkpoint lacks only a new head; print what "
        "load_state_dict returns"
    )
    return (
        f"{sentence[:1].upper()}{sentence[1:]}. The checkpoint comes from a different architecture, or from "
        "a different version of this one.",
        (build, in_part_only) if strict and len(_parts(symptom.missing)) <= 1 else build,
    )


def _parts(keys: Sequence[str]) -> set[str]:
    """Return the modules of the model that keys belong to: a new head is one of them."""
    return {key.partition(".")[0] for key in keys}


def model_attribute(prefix: str) -> str:
    """Return how to reach the inner model: ``model.module`` for ``module.``."""
    return f"model.{prefix.rstrip('.')}"
