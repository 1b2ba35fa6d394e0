"""Tracebacks and stacks that a script prints or logs itself: as under `python`."""

import pytest

from tests.support.side_by_side import both as both

CAUGHT = """
    import logging, sys, traceback
    import torch
    from torch import nn

    logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    class Stack(nn.Module):
        def forward(self, inputs):
            print("".join(traceback.format_stack()))
            return inputs

    for label in (0, 2):
        try:
            optimizer.zero_grad()
            outputs = Stack()(model(torch.ones(3, 4)))
            nn.functional.cross_entropy(outputs, torch.full((3,), label)).backward()
            optimizer.step()
        except IndexError as error:
            print(traceback.format_exc())
            logging.exception("batch with label %s", label)
            logging.warning("here", stack_info=True)
            try:
                raise RuntimeError("no step") from error
            except RuntimeError:
                traceback.print_exc(file=sys.stdout)
    """


@pytest.mark.slow
def test_caught_exceptions_and_stacks(both):
    plain, observed = both(CAUGHT)
    assert observed == plain
    assert plain[1].count("IndexError: Target 2 is out of bounds.") == 3
    assert plain[1].count("in forward") == 2


def test_an_exception_of_a_module(both, tmp_path):
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "__main__.py").write_text(
        "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()\n"
        "print(''.join(traceback.format_stack()))\n"
    )
    plain, observed = both("", command=["-m", "tool"])
    assert observed == plain
