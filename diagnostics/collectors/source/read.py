"""Reads the source of a script and of the modules beside it that it has imported."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from pathlib import Path

from diagnostics.facts.where import Where, is_user_code, shorten
from diagnostics.facts.written import (
    BackwardBest,
    ConstantArgmax,
    ConstantSeed,
    CutTargets,
    HalvedLogits,
    KeptModel,
    LostResult,
    MonitoredMode,
    RefittedScaler,
    RemadeModel,
    SharedSetting,
    ShuffledApart,
    TruncatedAnswers,
    UnreadSplit,
    WrittenFacts,
)

from .backward_best import backward_best
from .constant_argmax import argmaxes_of_answers
from .data.constant_seeds import constant_seeds
from .data.cut_targets import cut_targets
from .data.refitted_scalers import refitted_scalers
from .data.shared_settings import shared_settings
from .data.shuffled_apart import shuffled_apart
from .data.unread_splits import unread_splits
from .halved_logits import halved_logits
from .kept_models import kept_models
from .lost_results import lost_results
from .monitored_modes import monitored_modes
from .remade_models import remade_models
from .truncated_answers import truncated_answers

MOST_FILES = 32
LARGEST = 2**20  # bytes of a file
PROBABILITIES = ("sigmoid", "softmax")  # activations that end below 1


def written_facts(
    files: Iterable[str],
    answers: tuple[int, ...] | None = None,
    activation: str | None = None,
    binary_logits: bool = False,
) -> WrittenFacts:
    """Return what stands in these files; a file that cannot be read or parsed is left out.

    Args:
        files: paths.
        answers: the shape of what the only model that was trained answers to a batch; None if not known.
        activation: that this model ends in; None if not known.
        binary_logits: whether its loss is a binary cross entropy that takes logits.
    """
    kept: list[KeptModel] = []
    unread: list[UnreadSplit] = []
    argmaxes: list[ConstantArgmax] = []
    seeds: list[ConstantSeed] = []
    shared: list[SharedSetting] = []
    apart: list[ShuffledApart] = []
    truncated: list[TruncatedAnswers] = []
    remade: list[RemadeModel] = []
    halved: list[HalvedLogits] = []
    refitted: list[RefittedScaler] = []
    backward: list[BackwardBest] = []
    lost: list[LostResult] = []
    cut: list[CutTargets] = []
    modes: list[MonitoredMode] = []
    for file in files:
        tree = parsed(file)
        if tree is None:
            continue
        shown = shorten(file)
        for name, model, line, function in kept_models(tree):
            kept.append(KeptModel(name, model, Where(shown, line, function)))
        for held_out, train, by, how, line, function in unread_splits(tree):
            unread.append(UnreadSplit(held_out, train, by, Where(shown, line, function), how))
        for generator, seed, draw, line, function in constant_seeds(tree):
            seeds.append(ConstantSeed(generator, seed, draw, Where(shown, line, function)))
        for one, other, name, early, late, line, function in shared_settings(tree):
            shared.append(SharedSetting(one, other, name, early, late, Where(shown, line, function)))
        for first, second, line, function in shuffled_apart(tree):
            apart.append(ShuffledApart(first, second, Where(shown, line, function)))
        for kind, training, evaluation, line, function in refitted_scalers(tree):
            refitted.append(RefittedScaler(kind, training, evaluation, Where(shown, line, function)))
        for value, best, rises, line, function in backward_best(tree):
            backward.append(BackwardBest(value, best, rises, Where(shown, line, function)))
        for callback, monitored, rises, line, function in monitored_modes(tree):
            modes.append(MonitoredMode(callback, monitored, rises, Where(shown, line, function)))
        for statement, name, rebound, line, function in lost_results(tree):
            lost.append(LostResult(statement, name, rebound, Where(shown, line, function)))
        for inputs, outputs, statement, line, function in cut_targets(tree):
            cut.append(CutTargets(inputs, outputs, statement, Where(shown, line, function)))
        if answers is not None and len(answers) == 2 and answers[1] == 1:
            for of, line, function in argmaxes_of_answers(tree):
                argmaxes.append(ConstantArgmax(of, answers, Where(shown, line, function)))
        for model, loop, weights, line, function in remade_models(tree):
            remade.append(RemadeModel(model, loop, Where(shown, line, function), weights))
        if activation in PROBABILITIES:
            for of, line, function in truncated_answers(tree):
                truncated.append(TruncatedAnswers(of, activation, Where(shown, line, function)))
        if binary_logits and activation not in PROBABILITIES:
            for of, way, line, function in halved_logits(tree):
                halved.append(HalvedLogits(of, way == "round", Where(shown, line, function)))
    return WrittenFacts(
        kept=tuple(kept),
        unread=tuple(unread),
        argmaxes=tuple(argmaxes),
        seeds=tuple(seeds),
        shared=tuple(shared),
        apart=tuple(apart),
        refitted=tuple(refitted),
        backward=tuple(backward),
        lost=tuple(lost),
        cut=tuple(cut),
        modes=tuple(modes),
        truncated=tuple(truncated),
        halved=tuple(halved),
        remade=tuple(remade),
    )


def files_of(script: str, folder: str | None) -> list[str]:
    """Return a script's file, and those of the modules in its folder that it has imported."""
    found = [script]
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and folder is not None and file.startswith(folder) and is_user_code(file):
            found.append(file)
    return list(dict.fromkeys(found))[:MOST_FILES]


def parsed(file: str) -> ast.Module | None:
    """Parse a file of Python; None if it is none, or cannot be read or parsed."""
    try:
        path = Path(file)
        if path.suffix != ".py" or path.stat().st_size > LARGEST:
            return None
        return ast.parse(path.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None
