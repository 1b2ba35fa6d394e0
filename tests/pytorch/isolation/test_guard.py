"""A part of the watch that fails is switched off, and the loop goes on."""

import torch
from torch import nn

from diagnostics.collectors.pytorch.watch.watcher import TorchWatcher
from tests.pytorch.watched import batch, mlp


class TestFaults:
    def test_a_fault_of_its_own_switches_that_part_off_and_the_loop_goes_on(self, monkeypatch):
        def broken(*_):
            raise ZeroDivisionError("on purpose")

        monkeypatch.setattr("diagnostics.collectors.pytorch.watch.watcher.keep", broken)
        monkeypatch.setattr("diagnostics.collectors.pytorch.watch.record.update_size.UpdateMeasure.begin", broken)
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        watch = TorchWatcher(model, [optimizer], 3)
        for step in range(6):
            inputs, labels = batch(step)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        watch.close()
        assert watch.faults == {
            "forward passes": "watching the forward passes ended: ZeroDivisionError: on purpose",
            "gradients": "watching the gradients ended: ZeroDivisionError: on purpose",
        }

    def test_the_end_of_the_memory_is_no_fault_of_ours(self, monkeypatch):
        def no_room(*_):
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 295424 bytes.")

        monkeypatch.setattr("diagnostics.collectors.pytorch.watch.record.step_log.StepLog.read", no_room)
        watch = TorchWatcher(model := mlp(), [optimizer := torch.optim.SGD(model.parameters(), lr=0.05)], 2)
        for step in range(4):
            inputs, labels = batch(step)
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        watch.close()
        assert (watch.faults, watch.uncovered["readings"]) == ({"readings": ""}, "memory ran out")
