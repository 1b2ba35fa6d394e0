"""Values of an environment's step() and reset() that do not fit: which side is the older one."""

import pytest

from diagnostics.api.explain import explain

RESET = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 41, in collect
    s, done = env.reset(), False
  File "/opt/venv/lib/python3.9/site-packages/gym/core.py", line 379, in reset
    obs, info = self.env.reset(**kwargs)
ValueError: too many values to unpack (expected 2)
"""
STEP = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 41, in collect
    {names} = env.step(action)
ValueError: {message}
"""


def told(text):
    return explain(text).crash.nature


def test_an_old_environment_within_new_wrappers():
    assert "The environment is older than the call (expected 2), and reset() returns the observation" in told(
        RESET
    )
    new = STEP.format(names="o, r, end, cut, info", message="not enough values to unpack (expected 5, got 4)")
    assert "The environment is older than the call (expected 5, got 4), and step() returns four values" in told(
        new
    )


def test_a_new_environment_within_an_old_loop():
    old = STEP.format(names="o, r, done, info", message="too many values to unpack (expected 4)")
    assert "since Gym 0.26, and in Gymnasium, step() returns five" in told(old)
    assert "older" not in told(old)


@pytest.mark.parametrize(
    "message", ["not enough values to unpack (expected 5, got 4)", "too many values to unpack (expected 4)"]
)
def test_without_the_line_it_may_be_one(message):
    for text in (f"ValueError: {message}", f"when training i am getting ValueError: {message}"):
        assert "If the line calls env.step()" in told(text)


def test_other_numbers_are_not_of_an_environment():
    assert "env.step()" not in told("ValueError: not enough values to unpack (expected 3, got 2)")
