"""Models and losses that answer in their own way are watched and examined as any other; nothing is raised."""

import sys
import threading

import pytest
import torch
from torch import nn

import diagnostics
from diagnostics.collectors.pytorch.discover.loops import LoopFinder


class NeverEqual(nn.Module):
    """Its parts may be in a set, as PyTorch asks for; to compare, measure or judge it is an error."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, inputs):
        return self.layer(inputs)

    def __eq__(self, other):
        raise RuntimeError("not to be compared")

    __hash__ = nn.Module.__hash__

    def __bool__(self):
        raise RuntimeError("neither true nor false")

    def __len__(self):
        raise RuntimeError("no length")


class Answering(NeverEqual):
    """It has every attribute that one asks for."""

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return lambda *arguments, **options: self


def batches(count=6):
    generator = torch.Generator().manual_seed(0)
    for _ in range(count):
        yield torch.randn(8, 4, generator=generator), torch.randint(3, (8,), generator=generator)


def train(model, optimizer, after=lambda loss: None):
    for inputs, labels in batches():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            model(inputs)
        after(loss)


@pytest.mark.parametrize("kind", [NeverEqual, Answering])
class TestHostileModels:
    def test_watch_sees_all_steps(self, kind):
        model = kind()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with diagnostics.watch(model, optimizer) as watch:
            train(model, optimizer, watch.step)
        report = watch.report()
        assert report.title == f"watched 6 steps of {kind.__name__}"
        assert report.faults == ()

    def test_a_plain_loop_is_found(self, kind):
        faults, watches, examined = [], [], []

        def watch(model, optimizers):
            watches.append(diagnostics.watch(model, optimizers))
            return watches[-1]

        finder = LoopFinder(watch, faults.append, lambda watching, step: examined.append(step.name))
        try:
            model = kind()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            train(model, optimizer)
        finally:
            finder.close()
        assert faults == []
        assert [watch.report().history.steps.total_steps for watch in watches] == [6]
        assert examined == [f"the first step of {kind.__name__}"]

    def test_examine_has_no_fault(self, kind):
        report = diagnostics.examine(kind(), list(batches()), loss_fn=nn.CrossEntropyLoss())
        assert report.faults == ()
        assert kind.__name__ in report.title


class TestWhatStepIsGiven:
    @pytest.mark.parametrize(
        ("loss", "said"),
        [
            (10**400, "step() was given an int too large for a float, which is not a number"),
            (torch.tensor(1 + 2j), "step() was given a tensor of complex64 (), which is not a number"),
            (torch.empty(0), "step() was given a tensor of float32 (0,), which is not a number"),
            (torch.empty((), device="meta"), "tensors on the device meta have no values"),
        ],
        ids=["huge", "complex", "empty", "meta"],
    )
    def test_that_is_no_number_is_said_and_not_raised(self, loss, said):
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with diagnostics.watch(model, optimizer) as watch:
            train(model, optimizer, lambda _: watch.step(loss))
            watch.evaluated(loss)
        report = watch.report()
        assert report.faults == ()
        assert [stage.detail for stage in report.stages if stage.name == "loss"] == [said]


class TestALossThatAnswersEverything:
    def test_is_examined_without_a_fault(self):
        class Loss(Answering):
            def forward(self, prediction, target):
                return nn.functional.cross_entropy(prediction, target)

        report = diagnostics.examine(nn.Linear(4, 3), list(batches()), loss_fn=Loss())
        assert report.faults == ()


class Exits(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, prediction, target):
        raise self.error


class TestExitsWithinALoss:
    def test_examine_reports_that_the_loss_ends_the_program(self):
        report = diagnostics.examine(nn.Linear(4, 3), list(batches()), loss_fn=Exits(SystemExit(3)))
        assert report.faults == ()
        stages = {stage.name: (stage.status, stage.detail) for stage in report.stages}
        assert stages["forward and loss"][0] in ("failed", "stopped")
        assert "SystemExit" in stages["forward and loss"][1]

    def test_an_interrupt_from_the_keyboard_gets_through(self):
        with pytest.raises(KeyboardInterrupt):
            diagnostics.examine(nn.Linear(4, 3), list(batches()), loss_fn=Exits(KeyboardInterrupt()))


class TestReportsFromAnotherThread:
    def test_change_and_break_nothing_while_the_training_goes_on(self):
        """The steps of a watch that is asked for reports all the time are those of one that is asked once."""
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            histories, raised = [], []
            for asked in (False, True):
                torch.manual_seed(0)
                model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
                optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
                watch, over = diagnostics.watch(model, optimizer, every=2), threading.Event()

                def ask(watch=watch, over=over):
                    while not over.is_set():
                        try:
                            watch.report()
                        except BaseException as error:
                            raised.append(error)
                            return

                asking = threading.Thread(target=ask)
                if asked:
                    asking.start()
                for _ in range(25):
                    train(model, optimizer, watch.step)
                over.set()
                if asked:
                    asking.join()
                watch.close()
                report = watch.report()
                assert report.faults == ()
                histories.append(report.history)
        finally:
            sys.setswitchinterval(interval)
        assert raised == []
        plain, asked = histories
        assert asked.steps.steps.tolist() == plain.steps.steps.tolist() == list(range(150))
        assert asked.losses.values.tolist() == plain.losses.values.tolist()
        assert asked.updates.steps.tolist() == plain.updates.steps.tolist()

    def test_hold_all_steps_of_a_thread_that_has_ended(self):
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        watch = diagnostics.watch(model, optimizer)
        training = threading.Thread(target=train, args=(model, optimizer, watch.step))
        training.start()
        training.join()
        assert watch.report().history.losses.steps.tolist() == list(range(6))
        watch.close()
