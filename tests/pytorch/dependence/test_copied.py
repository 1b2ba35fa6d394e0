"""Models that give back the tokens of an input."""

from __future__ import annotations

import torch
from torch import nn

from diagnostics.collectors.pytorch.dependence.measure import measure
from diagnostics.collectors.pytorch.dependence.subject import Subject
from tests.pytorch.dependence.test_measure import Lambda, subject


def measured(function, *layers, inputs, target):
    return measure(subject(Lambda(function, *layers), *inputs, target=target, predicts_tokens=True))


def identity(size):
    embed = nn.Embedding(size, size)
    embed.weight.data = 10 * torch.eye(size)
    return embed


def tokens():
    torch.manual_seed(0)
    return torch.randint(1, 20, (12, 9))


def test_a_decoder_that_is_given_its_targets_copies_them():
    target = tokens()
    facts = measured(lambda _, x, embed: embed(x), identity(20), inputs=(target.flip(1), target), target=target)
    assert (facts.copy.input, facts.copy.share, facts.copy.source) == ("1", 1.0, "0")


def test_a_language_model_whose_targets_are_not_shifted_copies_them():
    target = tokens()
    facts = measured(lambda x, embed: embed(x), identity(20), inputs=(target,), target=target.reshape(-1))
    assert (facts.copy.share, facts.copy.source) == (1.0, None)


def test_targets_that_a_model_is_given_for_its_loss_are_no_input():
    """As in the style of `logits, loss = model(x, targets)`."""
    target = tokens()
    model = Lambda(lambda x, _, embed: embed(x), identity(20))
    asked = Subject(
        model,
        call=lambda copied, given: copied(*given.values()),
        inputs={"x": target, "targets": target.clone()},
        target=target.reshape(-1),
        predicts_tokens=True,
    )
    copied = measure(asked).copy
    assert (copied.input, copied.share, copied.source) == ("x", 1.0, None)


def test_an_autoencoder_is_not_judged():
    target = tokens()
    facts = measured(
        lambda x, embed: embed(x) + embed(x).mean(1, keepdim=True), identity(20), inputs=(target,), target=target
    )
    assert facts.copy is None
    assert facts.why_not["copy"] == "the model may be an autoencoder, which reproduces the text that it reads"


MASK = 21


def masked(hides=True):
    """Return tokens with a target at one in four positions, most of which hold the mask token."""
    shown = tokens()
    chosen = torch.zeros(shown.shape, dtype=torch.bool)
    chosen[:, ::4] = True
    wanted = shown if not hides else shown.masked_fill(chosen, MASK)
    shown = shown.masked_fill(chosen, MASK)
    return shown, wanted.masked_fill(~chosen, -100)


def asked(function, given, target):
    model = Lambda(function, identity(22))
    return Subject(
        model,
        call=lambda copied, inputs: copied(*inputs.values()),
        inputs={"tokens": given},
        target=target.reshape(-1),
        ignore_index=-100,
        predicts_tokens=True,
    )


def test_targets_of_an_encoder_are_the_mask_token():
    given, target = masked()
    copied = measure(asked(lambda x, embed: embed(x) + embed(x).mean(1, keepdim=True), given, target)).copy
    assert (copied.mask, copied.targets, copied.hidden, copied.masked) == (MASK, 36, 36, True)


def test_answers_of_a_decoder_are_no_mask_tokens():
    """Its prompts have no targets, and the answers are often the same word."""
    given, target = masked()
    copied = measure(asked(lambda x, embed: embed(x), given, target)).copy
    assert (copied.mask, copied.masked) == (None, False)


def test_targets_from_before_the_masking_are_no_input():
    given, target = masked(hides=False)
    facts = measure(asked(lambda x, embed: embed(x) + embed(x).mean(1, keepdim=True), given, target))
    assert facts.why_not["copy"] == "the targets are not the tokens of one of the inputs"


def test_targets_that_are_the_next_tokens_are_no_input():
    target = tokens()
    facts = measured(lambda x, embed: embed(x), identity(20), inputs=(target[:, :-1],), target=target[:, 1:])
    assert facts.why_not["copy"] == "the targets are not the tokens of one of the inputs"


def test_a_copy_task_with_a_decoder_is_not_judged():
    target = tokens()
    taught = torch.cat([torch.zeros(12, 1, dtype=torch.long), target[:, :-1]], dim=1)
    facts = measured(lambda src, _, embed: embed(src), identity(20), inputs=(target, taught), target=target)
    assert facts.why_not["copy"].startswith("another input holds the targets shifted by one position")
