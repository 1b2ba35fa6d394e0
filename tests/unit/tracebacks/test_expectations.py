"""What a message expected and what it got, of libraries that nobody listed."""

import time

import pytest

from diagnostics.api.explain import explain
from diagnostics.collectors.tracebacks.topic import expectation_in

CASES = [
    ("The time column should have either dates or integers, got 'object'.", "dates or integers", "objects: text"),
    ("teapot should be a Cup. Got <class 'NoneType'>", "a Cup", "None came"),
    ("Expected 4D teapots (got 3D teapots)", "4D teapots", "print the shape or number"),
    ("num_cups must be a positive integer, but got 0", "a positive integer", "print the shape or number"),
    ("got float32 but expected int64", "int64", "another type of number"),
    ("cups must be a dict but is <class 'list'>", "a dict", "a container came"),
    ("brew expects a Pot but received <class 'str'> instead", "a Pot", "a text came"),
    ("Expecting Pot which is from brew.Pot(). Got: 0", "Pot which is from brew.Pot()", "a plain value came"),
]


@pytest.mark.parametrize(("message", "wanted", "advice"), CASES, ids=[case[0] for case in CASES])
def test_both_sides_are_read(message, wanted, advice):
    found = expectation_in(message)
    assert found.wanted == wanted
    assert advice in found.advice


@pytest.mark.parametrize("message", ["The pot must be filled first", "Expected teapots", "got milk", "x == y", ""])
def test_a_message_with_one_side_tells_nothing(message):
    assert expectation_in(message) is None


@pytest.mark.parametrize(
    "text",
    [
        "ValueError: num_cups must be a positive integer, but got 0",
        "I get `ValueError: num_cups must be a positive integer, but got 0`, why?",
        'Traceback (most recent call last):\n  File "/home/ada/brew.py", line 3, in brew\n    pour(cups)\n'
        "ValueError: num_cups must be a positive integer, but got 0",
    ],
)
def test_it_is_told_however_it_is_pasted(text):
    assert "It expects a positive integer, and got 0." in explain(text).crash.nature


def test_what_came_is_no_advice():
    assert "says itself what to do" not in explain("TypeError: expected a pot, got a kettle").crash.nature


@pytest.mark.parametrize("part", ["expected got ", "got a expected ", "must be a, ", "should be x.y but ", "a.b "])
def test_no_text_takes_long(part):
    start = time.process_time()
    expectation_in(part * 1_000)
    assert time.process_time() - start < 0.2
