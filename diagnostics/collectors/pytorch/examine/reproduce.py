"""Makes one PyTorch training step twice from the same state, on copies, and compares the results."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from torch import Tensor, nn

from diagnostics.collectors.isolation.rng import OwnGenerator, generators_within
from diagnostics.collectors.shared.arrays import fields, flat, is_tensor
from diagnostics.collectors.shared.reread import seed_globals
from diagnostics.facts.trials import ReproductionFacts

KEPT = 2**26  # scalars of the first step whose values are kept, to say by how much they differ; 256 MiB
DRAWN_FROM_SYSTEM = 2**64  # NumPy takes 128 bits from the operating system where no seed is given


def reproduce(
    roots: tuple[Any, ...],
    take_batch: Callable[[], Any],
    fresh_model: Callable[[], nn.Module],
    compute: Callable[[nn.Module, Any], Tensor],
) -> ReproductionFacts:
    """Run forward, loss and backward of one batch twice, each time on a new copy, and find the first difference.

    Generators that the data or the model own are put back between the two, but for those that were made without a
    seed: in another process they would begin elsewhere, and so they do here.

    Args:
        roots: what may own generators: data, model, loss.
        take_batch: makes the same batch each time, but for what is drawn at random.
        fresh_model: copies the model.
        compute: returns the loss of a model on a batch.
    """
    states = [(own, own.state()) for own in generators_within(*roots)]
    steps: list[dict[str, tuple[bytes, Tensor | None]]] = []
    unseeded = sum(_made_without_seed(own) for own, _ in states)
    for number in range(2):
        seed_globals(0)
        for own, state in states:
            own.restore(state)
        model = fresh_model().train()
        if number:
            for own in [own for own, _ in states] + generators_within(model):  # the copy has copies of them
                if _made_without_seed(own):
                    own.generator.random()
        steps.append(_step(model, take_batch, compute))
    first, second = steps
    differing = [name for name in first if name not in second or first[name][0] != second[name][0]]
    if not differing:
        return ReproductionFacts(compared=len(first), unseeded=unseeded)
    one, other = first[differing[0]][1], second.get(differing[0], (b"", None))[1]
    difference, largest = None, None
    if one is not None and other is not None and one.shape == other.shape:
        difference, largest = float((one - other).abs().max()), float(one.abs().max())
    return ReproductionFacts(len(first), len(differing), differing[0], difference, largest, unseeded)


def _step(
    model: nn.Module, take_batch: Callable[[], Any], compute: Callable[[nn.Module, Any], Tensor]
) -> dict[str, tuple[bytes, Tensor | None]]:
    """Return digest and, as far as there is room, the values of all that a step makes, in the order it is made."""
    seen: dict[str, tuple[bytes, Tensor | None]] = {}
    room = [KEPT]

    def note(name: str, value: Any) -> None:
        for part, tensor in flat({name: value} if is_tensor(value) else fields(value)).items():
            if not isinstance(tensor, Tensor):
                continue
            kind = "element" if part[:1].isdigit() else "field"
            called = name if is_tensor(value) else f"{name} ({kind} {part})"
            while called in seen:  # a layer that is used twice
                called += ", again"
            values = tensor.detach().cpu()
            wide = values.double() if values.is_floating_point() else values
            digest = hashlib.blake2b(np.ascontiguousarray(wide.numpy()).tobytes(), digest_size=16).digest()
            room[0] -= values.numel()
            seen[called] = digest, values.double() if room[0] >= 0 else None

    batch = take_batch()
    note("the batch", batch)
    with _outputs_of(model, note):
        loss = compute(model, batch)
    note("the loss", loss)
    if loss.requires_grad:
        loss.backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            note(f"the gradient of {name!r}", parameter.grad)
    return seen


@contextmanager
def _outputs_of(model: nn.Module, note: Callable[[str, Any], None]) -> Iterator[None]:
    """Note what each module without modules in it returns."""

    def hook(name: str) -> Any:
        return lambda module, inputs, output: note(f"the output of {name!r}", output)

    leaves = [(name, module) for name, module in model.named_modules() if name and not any(module.children())]
    handles = [module.register_forward_hook(hook(name)) for name, module in leaves]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _made_without_seed(own: OwnGenerator) -> bool:
    """Whether NumPy was given no seed for this one: then it keeps the many bits that the system gave it."""
    bits = getattr(own.generator, "bit_generator", None) or getattr(own.generator, "_bit_generator", None)
    entropy = getattr(getattr(bits, "seed_seq", None), "entropy", None)
    return isinstance(entropy, int) and entropy >= DRAWN_FROM_SYSTEM
