"""Says which side is the older one where an environment's step() or reset() gives more or fewer values."""

from __future__ import annotations

_STEP = "(observation, reward, terminated, truncated, info)"


def of_environment(wanted: str, got: str | None, is_more: bool, line: str) -> str | None:
    """Say what a line that takes an environment's values apart proves; None if it does not call one.

    Args:
        wanted: how many values the line expects.
        got: how many there are, as far as the message says.
        is_more: whether there are more than expected.
        line: the line that failed; empty if the text does not show it.
    """
    given = got or ("more" if is_more else "fewer")
    is_step = ".step(" in line
    if is_step or ".reset(" in line:
        expected = f"{wanted} values were expected, and the environment gave {given}: "
        if wanted != ("5" if is_step else "2"):
            return f"{expected}since Gym 0.26, and in Gymnasium, step() returns five {_STEP}, and reset() two."
        has = "four values from step()" if is_step else "the observation alone from reset()"
        return (
            f"{expected}the environment is older than the call, and returns {has}. Since Gym 0.26, and in "
            f"Gymnasium, step() returns five {_STEP}, and reset() two (observation, info): do so there, or use "
            "the gym that it was written for."
        )
    if line:
        return None
    if is_more and wanted == "4":
        return (
            f"If the line calls env.step(): since Gym 0.26, and in Gymnasium, it returns five values "
            f"{_STEP}, and reset() two. Otherwise print the right side once."
        )
    if (wanted, got) == ("5", "4"):
        return (
            f"If the line calls env.step(): Gymnasium, and Gym since 0.26, expect five values {_STEP}, "
            "and this environment returns the four of before. Otherwise print the right side once."
        )
    return None
