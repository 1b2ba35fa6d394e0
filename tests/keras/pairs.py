"""One bug in PyTorch and in Keras: whether the two findings say the same."""

import difflib
import re

# What a message owes to the framework: names of layers, weights, losses and arguments.
NAMES = re.compile(
    r'"[^"]*"|\w+(?:/[\w*]+)+|\b\d+\.(?:weight|bias|\*)|\b\w+(?:Loss|Crossentropy)\b(?:\([^)]*\))?'
    r"|\b(?:loss|lr|learning_rate)="
)
NUMBER = r"-?\b(?:\d+(?:[.,]\d+)*(?:e[+-]?\d+)?|nan|inf)\b%?"
# Two batches may hold three bad rows or five, so a list of numbers counts as one.
NUMBERS = re.compile(rf"{NUMBER}(?:(?:, | and ){NUMBER})*(?:, …)?(?: more)?")


def bare(message):
    """Take out the framework's own names and all numbers."""
    return NUMBERS.sub("#", NAMES.sub("", message))


def assert_alike(one, other, at_least=1.0, reading=str):
    """Assert that two findings are of one rule and severity, and that so much of their words agrees.

    Args:
        one: a `diagnostics.Finding`.
        other: the other framework's.
        at_least: the share of words, in order, that both messages have; 1: they say the same word for word.
        reading: what is done to a message before its words are compared.
    """
    assert (one.rule, one.severity) == (other.rule, other.severity)
    words = [reading(finding.message).split() for finding in (one, other)]
    ratio = difflib.SequenceMatcher(None, *words).ratio()
    assert ratio >= at_least, f"only {ratio:.2f} of their words agree:\n{one.message}\n{other.message}"
