"""What `diagnose run` says where it saw no training."""

from diagnostics.run.observers.training import BUSY_S, NOTHING_TRAINED, nothing_trained


def test_nothing_was_seen():
    assert nothing_trained(0, BUSY_S / 2) == NOTHING_TRAINED


def test_updates_by_hand():
    told = nothing_trained(50, 0.0)
    assert told.status == "not judged"
    assert told.detail == (
        "backward() was called 50 times, and no PyTorch optimizer stepped with a model: weights that a script "
        "updates by hand, or in a function compiled by torch.compile, are not watched, and nothing here "
        "says that they learn"
    )


def test_child_processes():
    told = nothing_trained(0, 75.0)
    assert told.status == "not judged"
    assert told.detail == (
        "none was seen in this process; the processes that it started computed for 1 min 15 s, and what trains in "
        "them is not watched: run diagnose on the script that they run, or train in this process; processes that "
        "train together are started by torchrun or accelerate, with -m diagnostics run before the script, or by "
        "torch.multiprocessing.spawn"
    )
