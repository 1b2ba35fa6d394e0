"""Derives cause and fix for saved weights that do not fit the model from their names and shapes."""

from __future__ import annotations

import re

from diagnostics.facts.crash.shapes import WeightsMisfit
from diagnostics.text.join import listed

from .shape_fixes import Repair

_OF_IMAGE_SIZE = re.compile(
    r"attn_mask\d?$|relative_position_(?:bias_table|index)$|relative_coords_table$|rel_pos_[hw]$"
)


def of_weights(symptom: WeightsMisfit) -> Repair:
    """Distinguish a head of a different size, which can be replaced, from a different model."""
    if of_size := _of_image_size(symptom):
        return of_size
    owners = {name.rpartition(".")[0] for name in symptom.weights}
    outputs = {saved[:1] for saved, built in symptom.weights.values() if saved[1:] == built[1:]}
    if symptom.pretrained:
        return "", "from_pretrained(..., ignore_mismatched_sizes=True), which reinitialises these weights"
    built = {new[:1] for saved, new in symptom.weights.values() if saved[1:] == new[1:]}
    only_outputs = len(outputs) == len(built) == 1 and all(s[1:] == b[1:] for s, b in symptom.weights.values())
    if only_outputs and len(owners) > 1:
        ((size,),) = outputs
        return (
            f"Only the number of outputs of {listed(sorted(owners), most=4)} differs.",
            f"build {symptom.model} with {size} outputs, as in the checkpoint, load the weights, then replace "
            "these layers",
        )
    if only_outputs:
        (owner,), ((size,),) = owners, outputs
        if re.search("embed|emb$|wte|wpe", owner.lower()):
            return _of_embedding(symptom, owner, size)
        return (
            f"Only the number of outputs{f' of {owner}' if owner else ''} differs.",
            f"build {symptom.model} with {size} outputs, as in the checkpoint, load the weights, then replace "
            f"{owner or 'that layer'}",
        )
    differing = {
        tuple(axis for axis, (a, b) in enumerate(zip(saved, new, strict=True)) if a != b)
        if len(saved) == len(new)
        else ()
        for saved, new in symptom.weights.values()
    }
    if differing == {(1,)} and len(symptom.weights) == 1:
        (name,), ((saved, new),) = symptom.weights, symptom.weights.values()
        return (
            f"Only the number of inputs of {name.rpartition('.')[0] or name} differs.",
            (
                f"give the layer the checkpoint's {saved[1]} inputs: image channels, table columns, or the size "
                "of the flattened or concatenated input",
                f"load all weights except this one, and retrain this layer for {new[1]} inputs",
            ),
        )
    build = f"build {symptom.model} with the sizes in the checkpoint, then load the weights"
    pairs = [
        [(a, b) for a, b in zip(saved, new, strict=False) if a != b] for saved, new in symptom.weights.values()
    ]
    of_outputs = any(len(saved) == 1 for saved, _ in symptom.weights.values())  # a bias has one number per output
    if of_outputs and len(pairs) > 1 and () not in differing and all(each == pairs[0][:1] for each in pairs):
        was, now = pairs[0][0]
        return (
            f"In all of them, one size is {was} in the checkpoint and {now} in the model, usually because the "
            "number of classes differs.",
            (
                "own = model.state_dict(); state = {key: value for key, value in state.items() if key in own and "
                "value.shape == own[key].shape}; model.load_state_dict(state, strict=False)  # the weights left "
                "out are trained from scratch",
                build,
            ),
        )
    return "", build


def _of_image_size(symptom: WeightsMisfit) -> Repair | None:
    """Explain window masks and position tables, which are built for one image size."""
    if not all(_OF_IMAGE_SIZE.search(name) for name in symptom.weights):
        return None
    name = listed([name.rpartition(".")[2] for name in symptom.weights][:1])
    return f"{name} depends on the image size and the window size: the model was built for different sizes.", (
        f"build {symptom.model} with the img_size and window_size of the checkpoint (its name often contains "
        "them)",
        "for masks and indices, which are computed: remove them from the state dict, and load with strict=False",
        "for position tables: interpolate the saved tables; timm does this with img_size= in create_model",
    )


def _of_embedding(symptom: WeightsMisfit, owner: str, size: int | None) -> Repair:
    """Explain an embedding, whose first axis counts words, ids or positions."""
    if "pos" in owner.lower() or owner.endswith("wpe"):
        return (
            f"Only the number of positions of {owner} differs.",
            (
                f"build {symptom.model} for the length or image size of the checkpoint ({size} positions)",
                "interpolate the saved positions to the new length before loading",
            ),
        )
    return (
        f"Only the number of rows of {owner} differs: one for each word, id or item.",
        (
            f"use the checkpoint's vocabulary, tokenizer or list of ids, which has {size} entries; one rebuilt "
            "from other data also numbers them differently",
            f"model.resize_token_embeddings({size}) before loading, for a model of transformers with added tokens",
        ),
    )
