"""Nobody but a program's own backward passes reads the tensors that its graphs have saved.

Such a tensor may be unpacked by a hook of the program's: a checkpointed block is then computed again, and a tensor
that was offloaded may be there only once.
"""

from collections import Counter

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from diagnostics.run.observer import ScriptObserver
from tests.support import healthy
from tests.support.healthy import few_of, load

PROGRAMS = [path for path in healthy.PROGRAMS if not path.stem.startswith(("keras_", "trainer_"))]
NO_BACKWARD_PASS = -1


def run(path):
    """Train a program; return its metrics, how often each hook ran, and what was read outside a backward pass."""
    program, counts, outside = load(path), Counter(), []

    def pack(tensor):
        counts["packed"] += 1
        return tensor

    def unpack(tensor):
        counts["unpacked"] += 1
        if torch._C._current_graph_task_id() == NO_BACKWARD_PASS:
            outside.append(tuple(tensor.shape))
        return tensor

    with saved_tensors_hooks(pack, unpack):
        metrics = program.train(*program.build())
    return metrics, counts, outside


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("path", few_of(PROGRAMS), ids=lambda path: path.stem)
def test_only_the_backward_pass_of_the_program_reads_them(path):
    alone = run(path)
    looking = ScriptObserver()
    observed = run(path)
    looking.close()
    assert observed == alone
    assert observed[2] == []
    assert alone[1]["unpacked"] > 0
    assert looking.faults == []
    for report in (*looking.examined, *looking.watched()):
        assert report.faults == ()
