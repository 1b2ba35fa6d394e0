"""Dicts that number words from 0, among the objects that make batches."""

from types import SimpleNamespace

import pytest

from diagnostics.collectors.shared.vocabulary import first_words

WORDS = ("soup", "wine", "bread", "salt")  # a dict would be found among the global variables


def numbered(words=WORDS, start=0):
    return {word: index for index, word in enumerate(words, start)}


def found(*dicts):
    return first_words(SimpleNamespace(dicts=list(dicts)))


def test_finds_the_word_with_id_0_by_the_size_of_the_dict():
    assert found(numbered(), numbered("etaoin")) == {4: "soup", 6: "e"}


@pytest.mark.parametrize(
    "dicts",
    [
        [numbered(("<pad>", *WORDS))],
        [numbered(("PAD", *WORDS))],
        [numbered(start=1)],
        [{**numbered(), "tea": 9}],  # with gaps
        [{**numbered(), "wine": 1.0}],
        [numbered(WORDS[:2])],
        [numbered(), numbered(("O", "PER", "LOC", "ORG"))],  # which of the two is not known
        [{}],
    ],
)
def test_leaves_out_other_dicts(dicts):
    assert found(*dicts) == {}
