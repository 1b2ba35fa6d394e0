"""Loops in the ways in which people write them: which model is watched with which optimizer, and which loss."""

import copy
import ctypes
import gc
import types
import weakref

import psutil
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import diagnostics
from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.pytorch.discover import loops
from diagnostics.collectors.pytorch.discover.loops import LoopFinder
from diagnostics.collectors.pytorch.discover.optimizers import CHANGES, MAX_MODELS, SHORT
from diagnostics.run.observer import ScriptObserver

INPUTS = torch.randn(32, 6, generator=torch.Generator().manual_seed(0))
LABELS = INPUTS[:, :3].argmax(1)


def network():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def sgd(*modules):
    return torch.optim.SGD([p for module in modules for p in module.parameters()], lr=0.1)


class Note:
    """Stands where a `Watch` would: takes down what the finder tells it."""

    def __init__(self, model, optimizers):
        self.model, self.optimizers, self.losses, self.closed = model, optimizers, [], False

    def step(self, loss=None):
        self.losses.append(float(loss))

    def close(self):
        self.closed = True


@pytest.fixture
def finder():
    faults = []
    made = LoopFinder(Note, faults.append)
    yield made
    made.close()
    assert faults == []


def train(forward, optimizer, steps=3):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(forward(), LABELS)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class TestLoop:
    def test_a_model_and_its_optimizer_and_every_loss(self, finder):
        model = network()
        optimizer = sgd(model)
        losses = train(lambda: model(INPUTS), optimizer)
        (watch,) = finder.watches
        assert (watch.model, watch.optimizers, watch.losses) == (model, [optimizer], losses)

    def test_is_watched_from_its_first_forward_pass_on(self, finder):
        model = network()
        optimizer = sgd(model)
        model(INPUTS)
        assert [(watch.model, watch.optimizers) for watch in finder.watches] == [(model, [optimizer])]

    def test_a_model_that_is_tried_before_its_optimizer_is_made(self, finder):
        model = network()
        model(INPUTS)
        assert finder.watches == []
        train(lambda: model(INPUTS), sgd(model))
        assert [len(watch.losses) for watch in finder.watches] == [3]

    def test_a_layer_that_was_tried_before_it_became_part_of_the_model(self, finder):
        model = network()
        model[0](INPUTS)
        model(INPUTS)
        model[2].bias.requires_grad_(False)
        train(lambda: model(INPUTS), sgd(model))
        assert [watch.model for watch in finder.watches] == [model]

    def test_evaluation_is_none(self, finder):
        model = network()
        optimizer = sgd(model)
        with torch.no_grad():
            model(INPUTS)
        assert finder.watches == [], optimizer

    def test_modules_called_one_by_one_are_watched_together(self, finder):
        encoder, head = nn.Linear(6, 8), nn.Linear(8, 3)
        optimizer = sgd(encoder, head)
        losses = train(lambda: head(encoder(INPUTS).relu()), optimizer)
        (watch,) = finder.watches
        assert [name for name, _ in watch.model.named_children()] == ["Linear-0", "Linear-1"]
        for child, module in zip(watch.model.children(), (encoder, head), strict=True):
            assert vars(child) is vars(module)
        assert watch.losses == losses

    def test_two_optimizers_of_one_model(self, finder):
        model = network()
        first, second = sgd(model[0]), sgd(model[2])
        losses = []
        for _ in range(3):
            loss = nn.functional.cross_entropy(model(INPUTS), LABELS)
            loss.backward()
            first.step()
            second.step()
            losses.append(loss.item())
        (watch,) = finder.watches
        assert (watch.model, watch.optimizers, watch.losses) == (model, [first, second], losses)

    def test_two_models_that_play_against_each_other(self, finder):
        generator, critic = nn.Linear(6, 6), nn.Linear(6, 1)
        of_generator, of_critic = sgd(generator), sgd(critic)
        losses = {"generator": [], "critic": []}
        for _ in range(3):
            of_critic.zero_grad()
            loss = (critic(generator(INPUTS).detach()) - critic(INPUTS)).mean()
            loss.backward()
            of_critic.step()
            losses["critic"].append(loss.item())
            of_generator.zero_grad()
            loss = -critic(generator(INPUTS)).mean()
            loss.backward()
            of_generator.step()
            losses["generator"].append(loss.item())
        assert {id(w.model): w.losses for w in finder.watches} == {
            id(generator): losses["generator"],
            id(critic): losses["critic"],
        }

    def test_the_losses_of_an_accumulation(self, finder):
        model = network()
        optimizer = sgd(model)
        for _ in range(4):
            nn.functional.cross_entropy(model(INPUTS), LABELS).backward()
        optimizer.step()
        assert [len(watch.losses) for watch in finder.watches] == [4]

    def test_a_loss_that_a_scaler_multiplied_is_taken_as_it_was(self, finder):
        model = network()
        optimizer, scaler = sgd(model), torch.amp.GradScaler("cpu", init_scale=1024.0)
        loss = nn.functional.cross_entropy(model(INPUTS), LABELS)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        assert [watch.losses for watch in finder.watches] == [[loss.item()]]

    def test_a_compiled_model(self, finder):
        model = network()
        compiled = torch.compile(model, backend="eager")
        losses = train(lambda: compiled(INPUTS), sgd(model))
        (watch,) = finder.watches
        assert (watch.model, watch.losses) == (compiled, losses)


class TestOptimizerOfAnotherModel:
    def test_is_held_against_the_model_that_was_called(self, finder):
        model = network()
        optimizer = sgd(model)
        model = copy.deepcopy(model)
        train(lambda: model(INPUTS), optimizer)
        assert [(watch.model, watch.optimizers) for watch in finder.watches] == [(model, [optimizer])]

    def test_a_target_network_is_no_such_model(self, finder):
        policy, target = network(), network()
        optimizer = sgd(policy)
        for _ in range(3):
            aim = target(INPUTS).detach()
            (policy(INPUTS) - aim).square().mean().backward()
            optimizer.step()
        assert [watch.model for watch in finder.watches] == [policy]

    def test_a_temperature_with_an_optimizer_of_its_own_is_none(self, finder):
        policy, temperature = network(), torch.zeros(1, requires_grad=True)
        of_policy, of_temperature = sgd(policy), torch.optim.SGD([temperature], lr=0.1)
        for _ in range(3):
            (policy(INPUTS).square().mean() * temperature.exp()).backward()
            of_policy.step()
            of_temperature.step()
        assert [watch.model for watch in finder.watches] == [policy]

    def test_an_image_that_is_optimized_through_a_model_is_none(self, finder):
        model, image = network(), INPUTS[:1].clone().requires_grad_()
        optimizer = torch.optim.SGD([image], lr=0.1)
        for _ in range(3):
            model(image).sum().backward()
            optimizer.step()
        assert finder.watches == []


class TestLeftAlone:
    def test_what_somebody_else_watches(self, finder):
        model = network()
        with finder.suspended():
            train(lambda: model(INPUTS), sgd(model))
        assert finder.watches == []

    def test_what_the_library_runs_itself(self, finder):
        model = network()
        with own_run():
            train(lambda: model(INPUTS), sgd(model))
        assert finder.watches == []

    def test_an_examination(self, finder):
        model = network()
        loader = [(INPUTS, LABELS)] * 4
        diagnostics.examine(model, loader, nn.CrossEntropyLoss(), sgd(model))
        assert finder.watches == []


class TestScript:
    def test_a_module_that_raises_leaves_the_next_call_seen(self, finder):
        model = network()
        optimizer = sgd(model)
        with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
            nn.Linear(5, 2)(INPUTS)
        train(lambda: model(INPUTS), optimizer)
        assert [watch.model for watch in finder.watches] == [model]

    def test_hears_of_no_fault(self, monkeypatch):
        faults = []

        def broken(*_):
            raise ZeroDivisionError("on purpose")

        finder = LoopFinder(broken, faults.append)
        model = network()
        losses = train(lambda: model(INPUTS), sgd(model), steps=1)
        finder.close()
        assert len(losses) == 1
        assert {str(fault) for fault in faults} == {"on purpose"}

    def test_gets_its_pytorch_back(self):
        def touched():
            return nn.Module.__call__, DataLoader.__iter__, torch.optim.Optimizer.__init__

        before, finder = touched(), LoopFinder(Note, [].append)
        assert not set(touched()) & set(before)
        finder.close()
        assert touched() == before

    def test_a_thousand_layers_in_a_list_are_not_remembered(self, finder, monkeypatch):
        monkeypatch.setattr(loops, "ROOTS", 3)
        layers = [nn.Linear(6, 6) for _ in range(10)]
        for layer in layers:
            layer(INPUTS)
        assert len(finder._roots) == 3

    def test_learns_the_same_bits_when_it_is_watched(self):
        def run(watched):
            torch.manual_seed(0)
            finder = LoopFinder(diagnostics.watch, [].append) if watched else None
            model = network()
            losses = train(lambda: model(INPUTS), torch.optim.Adam(model.parameters()), steps=40)
            if finder is not None:
                finder.close()
                assert finder.watches[0].report().title == "watched 40 steps of Sequential"
            return losses

        assert run(watched=True) == run(watched=False)

    def test_the_first_batch_is_seen_and_a_nan_in_it_found(self):
        finder = LoopFinder(diagnostics.watch, [].append)
        model, broken = network(), INPUTS.clone()
        broken[3, 2] = float("nan")
        train(lambda: model(broken), sgd(model), steps=2)
        finder.close()
        (finding,) = finder.watches[0].report().findings
        assert (finding.rule, finding.step, finding.evidence["rows"]) == ("non-finite-inputs", 0, [3])
        assert [len(watch._probe.history().losses.values) for watch in finder.watches] == [2]


class TestOver:
    @pytest.fixture
    def run(self):
        run = ScriptObserver()
        yield run
        run.close()
        assert run.faults == []

    def train_one(self, width=64, steps=2):
        model = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 3))
        train(lambda: model(INPUTS), torch.optim.Adam(model.parameters()), steps)
        return weakref.ref(model), weakref.ref(model[0].weight)

    def test_a_model_that_the_script_let_go_of_is_gone_and_its_report_is_there(self, run):
        gc.disable()  # not only when garbage is collected: the next model may need the room
        try:
            references = [self.train_one() for _ in range(50)]
            assert [(model(), weight()) for model, weight in references] == [(None, None)] * 50
        finally:
            gc.enable()
        assert run.loops._finder.watches == []
        assert [report.title for report in run.watched()] == ["watched 2 steps of Sequential"] * MAX_MODELS
        assert len(run.examined) == MAX_MODELS

    def test_a_model_with_a_patched_forward_is_gone_after_a_garbage_collection(self, run):
        references = []
        for _ in range(3):
            model = network()
            model.forward = types.MethodType(type(model).forward, model)
            train(lambda model=model: model(INPUTS), torch.optim.Adam(model.parameters()))
            references += [weakref.ref(model), weakref.ref(model[0].weight)]
            del model
            gc.collect()
            assert [reference() for reference in references] == [None] * len(references)
        assert [report.title for report in run.watched()] == ["watched 3 steps of Sequential"] * 3
        assert len(run.examined) == 3

    def test_evaluations_are_seen_after_a_function_has_trained_the_model(self, run):
        model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
        train(lambda: model(INPUTS), sgd(model), steps=20)  # the optimizer is gone
        with torch.no_grad():
            [model(INPUTS[:8]) for _ in range(2)]
        (report,) = run.watched()
        assert "train-mode-evaluation" in {finding.rule for finding in report.findings}

    def test_what_a_deleted_optimizer_kept_of_each_parameter_is_gone(self, run):
        model = network()
        optimizer = torch.optim.Adam(model.parameters())
        train(lambda: model(INPUTS), optimizer)
        kept = [weakref.ref(state["exp_avg"]) for state in optimizer.state.values()]
        del optimizer
        assert [each() for each in kept] == [None] * 4
        assert len(run.loops._finder.watches) == 1

    def test_another_optimizer_ends_a_loop_whose_own_is_gone(self, run):
        model = network()
        train(lambda: model(INPUTS), sgd(model))
        train(lambda: model(INPUTS), sgd(model), steps=5)
        assert [report.title for report in run.watched()] == [
            "watched 3 steps of Sequential",
            "watched 5 steps of Sequential",
        ]
        assert len(run.loops._finder.watches) == 1

    def test_one_that_dies_while_somebody_traces_is_closed_at_the_end(self):
        class Holder(Note):
            def __init__(self, model, optimizers):
                super().__init__(type(model), [])
                notes.append(self)

        notes, faults = [], []
        finder = LoopFinder(Holder, faults.append)
        model = network()
        held = [model, sgd(model)]
        del model
        train(lambda: held[0](INPUTS), held[1])

        def traced(inputs):
            held.clear()
            gc.collect()
            return inputs * 2

        torch.jit.trace(traced, INPUTS, check_trace=False)
        assert [note.closed for note in notes] == [False]
        finder.close()
        assert [note.closed for note in notes] == [True]
        assert faults == []

    def test_the_memory_of_many_models_is_that_of_one(self, run):
        for _ in range(3):  # what the allocator keeps for later grows with the first few
            self.train_one(width=100_000)
        before = self.resident()
        for _ in range(30):
            self.train_one(width=100_000)
        # With gradients and Adam's averages, each takes some 16 MB: 480 MB.
        assert self.resident() - before < 200e6

    def resident(self):
        """Return the bytes of this process, without those that malloc keeps for later, up to 270 MB."""
        if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # of glibc
            trim(0)
        return psutil.Process().memory_info().rss

    def test_models_that_the_script_keeps_are_watched_up_to_a_number(self, run, monkeypatch):
        monkeypatch.setattr(loops, "MAX_LOOPS", 3)
        models = [network() for _ in range(5)]
        optimizers = [sgd(model) for model in models]
        for model, optimizer in zip(models, optimizers, strict=True):
            train(lambda model=model: model(INPUTS), optimizer)
        assert len(run.loops._finder.watches) == 3
        train(lambda: models[0](INPUTS), optimizers[0])  # over, and left alone from then on
        assert [report.title for report in run.watched()] == ["watched 3 steps of Sequential"] * 5

    def test_a_new_optimizer_for_the_same_model_begins_a_new_loop(self, run):
        model = network()
        for _ in range(2):
            train(lambda: model(INPUTS), sgd(model))
        assert [report.title for report in run.watched()] == ["watched 3 steps of Sequential"] * 2

    def test_a_second_optimizer_beside_the_first_begins_a_new_loop_once_it_has_gone_on_alone(self, run):
        model = network()
        first = sgd(model)
        train(lambda: model(INPUTS), first)
        model[0].requires_grad_(False)
        model[2] = nn.Linear(8, 3)
        train(lambda: model(INPUTS), sgd(model[2]), steps=loops.ALONE + 9)
        assert [report.title for report in run.watched()] == [
            "watched 3 steps of Sequential",
            "watched 10 steps of Sequential",
        ]
        assert first.param_groups  # the script holds it to its end

    def test_a_second_optimizer_of_all_parameters_begins_a_new_loop_with_its_first_step(self, run):
        model = network()
        first = sgd(model)
        train(lambda: model(INPUTS), first, steps=loops.ALONE)
        train(lambda: model(INPUTS), sgd(model), steps=5)
        assert [report.title for report in run.watched()] == [
            "watched 20 steps of Sequential",
            "watched 5 steps of Sequential",
        ]
        assert first.param_groups

    def test_optimizers_for_a_few_steps_each_begin_none(self, run):
        """In meta-learning, each task is learned with a new optimizer of the same parameters."""
        model = network()
        outer = sgd(model)
        tasks = []
        for _ in range(loops.ALONE + 2):
            train(lambda: model(INPUTS), outer, steps=1)
            tasks.append(sgd(model))
            train(lambda: model(INPUTS), tasks[-1], steps=3)
        assert [report.title for report in run.watched()] == ["watched 22 steps of Sequential"]

    def test_a_second_optimizer_that_takes_turns_with_the_first_begins_none(self, run):
        model = network()
        first = sgd(model[2])
        train(lambda: model(INPUTS), first)
        second = sgd(model[0])
        for _ in range(2):
            train(lambda: model(INPUTS), second, steps=loops.ALONE - 1)
            train(lambda: model(INPUTS), first)
        assert [report.title for report in run.watched()] == ["watched 9 steps of Sequential"]

    def test_one_of_two_optimizers_that_goes_ends_nothing(self, run):
        model = network()
        first, second = sgd(model[0]), sgd(model[2])
        train(lambda: model(INPUTS), second)
        del first
        train(lambda: model(INPUTS), second)
        assert [report.title for report in run.watched()] == ["watched 6 steps of Sequential"]


class TestManyModels:
    """A search trains hundreds of models for a few steps each."""

    @staticmethod
    def search(models, steps):
        for _ in range(models):
            model = network()
            train(lambda model=model: model(INPUTS), sgd(model), steps)

    @pytest.fixture
    def observed(self):
        run = ScriptObserver()
        yield run
        run.close()
        assert run.faults == []

    def test_watches_the_first_models_and_counts_the_others(self, observed):
        self.search(models=30, steps=2)
        assert (len(observed.trainings), observed.loops.short) == (MAX_MODELS, 30 - MAX_MODELS)
        assert all(training.examined is not None for training in observed.trainings)

    def test_watches_a_later_model_that_trains_for_long(self, observed):
        self.search(models=MAX_MODELS, steps=2)
        model = network()
        train(lambda: model(INPUTS), sgd(model), SHORT + 24)
        observed.close()
        late = observed.trainings[-1]
        assert (len(observed.trainings), observed.loops.short, late.examined) == (MAX_MODELS + 1, 0, None)
        assert observed.course(late).history.steps.total_steps == 24

    def test_watches_a_model_again_whose_optimizer_is_new_each_step(self, observed):
        self.search(models=MAX_MODELS, steps=2)
        model = network()
        train(lambda: model(INPUTS), sgd(model), SHORT + 1)
        for _ in range(3):
            train(lambda: model(INPUTS), sgd(model), steps=1)
        assert len(observed.trainings) == MAX_MODELS + 4

    def test_keeps_no_reference_to_optimizers_that_are_gone(self, finder):
        self.search(models=20, steps=1)
        gc.collect()
        assert finder._optimizers.count == 20
        assert len(finder._optimizers._references) < 20


class TestWithoutOptimizer:
    """Weights that the script updates itself."""

    @staticmethod
    def train(model, update, steps=6):
        losses = []
        for _ in range(steps):
            model.zero_grad()
            loss = nn.functional.cross_entropy(model(INPUTS), LABELS)
            loss.backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    update(parameter)
            losses.append(loss.item())
        return losses

    @pytest.mark.parametrize(
        "update",
        [
            lambda parameter: parameter.sub_(0.1 * parameter.grad),
            lambda parameter: parameter.data.add_(parameter.grad, alpha=-0.1),
            lambda parameter: setattr(parameter, "data", parameter - 0.1 * parameter.grad),
        ],
    )
    def test_a_model_is_watched_once_its_weights_have_changed_twice(self, finder, update):
        model = network()
        losses = self.train(model, update)
        (watch,) = finder.watches
        assert (watch.model, watch.optimizers, watch.losses) == (model, [], losses[CHANGES:])

    def test_gradients_alone_are_no_training(self, finder):
        self.train(network(), lambda parameter: None)
        assert finder.watches == []

    def test_an_optimizer_that_comes_later_begins_a_new_loop(self, finder):
        model = network()
        self.train(model, lambda parameter: parameter.sub_(0.1 * parameter.grad))
        optimizer = sgd(model)
        losses = train(lambda: model(INPUTS), optimizer, loops.ALONE + 3)
        assert (finder.watches[-1].optimizers, len(finder.watches[-1].losses)) == ([optimizer], 4)
        assert finder.watches[-1].losses == losses[-4:]

    def test_is_judged_without_an_optimizer(self):
        run = ScriptObserver()
        self.train(network(), lambda parameter: parameter.sub_(0.1 * parameter.grad), steps=30)
        run.close()
        (training,) = run.trainings
        assert training.examined is not None
        assert run.course(training).history.steps.total_steps == 30 - CHANGES
        assert run.faults == []


class TestForwardCalledDirectly:
    def test_the_layers_that_it_calls_are_watched(self, finder):
        model = network()
        losses = train(lambda: model.forward(INPUTS), sgd(model))
        (watch,) = finder.watches
        assert watch.losses == losses

    def test_a_module_without_layers_is_watched(self, finder):
        class Layer(nn.Linear):
            def forward(self, x):
                return x @ self.weight.T + self.bias

        model = Layer(6, 3)
        optimizer = sgd(model)
        losses = train(lambda: model.forward(INPUTS), optimizer)
        (watch,) = finder.watches
        assert (watch.model, watch.optimizers, watch.losses) == (model, [optimizer], losses)
