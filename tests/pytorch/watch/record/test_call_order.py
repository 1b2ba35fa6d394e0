"""What is heard of clipping, and of weights taken and put back, in the orders that loops have them."""

import copy
import io

import pytest
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

from diagnostics.collectors.pytorch.watch.record.calls.script_calls import calls
from diagnostics.collectors.pytorch.watch.watcher import TorchWatcher
from diagnostics.facts.calls import ClipFacts, LoadedKeys, RestoreFacts, ScaledClipFacts, StepOrderFacts
from diagnostics.facts.pipeline import OptimizerFacts
from tests.pytorch.watched import batch, mlp


def watched(
    *, first=None, before_backward=None, before_step=None, after_step=None, end=None, steps=6, optimizers=1
):
    """Train with calls at four places of the loop, and return the facts by type."""
    torch.manual_seed(0)
    model = mlp()
    made = [torch.optim.SGD(list(model.parameters())[n::optimizers], lr=0.05) for n in range(optimizers)]
    state = {} if first is None else {"kept": first(model)}
    watch = TorchWatcher(model, made, 2)
    for step in range(steps):
        inputs, labels = batch(step)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        model.zero_grad()
        for at, call in (("before", before_backward), ("backward", None), ("after", before_step)):
            if at == "backward":
                loss.backward()
            elif call is not None:
                call(model)
        for number, optimizer in enumerate(made):
            optimizer.step()
            if number + 1 < optimizers and before_step is not None:
                before_step(model)
        if after_step is not None:
            after_step(model)
        if step == steps // 2 and first is None and end is not None:
            state["kept"] = model.state_dict()
    if end is not None:
        end(model, state["kept"])
    watch.close()
    facts = {type(fact): fact for fact in watch.course()}
    assert watch.faults == {}
    return facts


def clips(model, limit=0.1):
    clip_grad_norm_(model.parameters(), limit)


class TestClips:
    def test_in_time_are_kept_with_the_norms_that_they_found(self):
        facts = watched(before_step=clips)[ClipFacts]
        assert (facts.in_time, facts.useless, facts.cut_to, len(facts.cut_from)) == (6, 0, 0.1, 6)
        assert (facts.cut_from > 0.1).all()

    @pytest.mark.parametrize("clip", [clips, lambda model: clip_grad_norm_(list(model.parameters()), 0.1)])
    def test_after_the_step_are_useless(self, clip):
        facts = watched(after_step=clip)[ClipFacts]
        assert (facts.function, facts.limit, facts.in_time, facts.useless) == ("clip_grad_norm_", 0.1, 0, 5)
        assert (facts.cleared, len(facts.norms), bool((facts.norms > 0.1).all())) == (False, 5, True)
        assert facts.where is not None
        assert facts.where.file == "tests/pytorch/watch/record/test_call_order.py"

    def test_of_values_are_heard_too(self):
        facts = watched(after_step=lambda model: torch.nn.utils.clip_grad_value_(model.parameters(), 0.01))
        assert facts[ClipFacts].useless == 5
        assert (facts[ClipFacts].function, len(facts[ClipFacts].norms)) == ("clip_grad_value_", 0)

    def test_before_the_backward_pass_find_no_gradients(self):
        facts = watched(before_backward=clips)[ClipFacts]
        assert (facts.in_time, facts.useless, facts.cleared) == (0, 6, True)

    def test_in_time(self):
        facts = watched(before_step=clips)[ClipFacts]
        assert (facts.in_time, facts.useless) == (6, 0)

    def test_between_the_steps_of_two_optimizers_are_in_time(self):
        facts = watched(before_step=clips, optimizers=2)[ClipFacts]
        assert (facts.in_time, facts.useless) == (12, 0)

    def test_that_only_measure_do_not_count(self):
        assert ClipFacts not in watched(after_step=lambda model: clips(model, float("inf")))

    def test_of_another_model_do_not_count(self):
        assert ClipFacts not in watched(after_step=lambda _: clips(mlp()))


def scaled(*, unscales=False, enabled=True, steps=6, clip=clips):
    """Train with a loss scaler and clipped gradients; return the facts on them."""
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=enabled)
    watch = TorchWatcher(model, [optimizer], 2)
    for step in range(steps):
        inputs, labels = batch(step)
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(inputs), labels)).backward()
        if unscales:
            scaler.unscale_(optimizer)
        clip(model)
        scaler.step(optimizer)
        scaler.update()
    watch.close()
    facts = {type(fact): fact for fact in watch.course()}
    assert watch.faults == {}
    return facts.get(ScaledClipFacts)


class TestScaledClips:
    def test_before_the_gradients_are_divided(self):
        facts = scaled()
        assert (facts.function, facts.limit, facts.steps, facts.scaled) == ("clip_grad_norm_", 0.1, 6, 6)
        assert facts.scales.tolist() == [1024.0] * 6
        assert bool((facts.norms > 100).all())
        assert facts.where.file == "tests/pytorch/watch/record/test_call_order.py"

    def test_of_single_values(self):
        facts = scaled(clip=lambda model: torch.nn.utils.clip_grad_value_(model.parameters(), 0.01))
        assert (facts.function, facts.scaled, len(facts.norms)) == ("clip_grad_value_", 6, 6)

    def test_after_they_were_divided(self):
        facts = scaled(unscales=True)
        assert (facts.steps, facts.scaled) == (6, 0)

    def test_without_a_scaler_or_clipping(self):
        assert scaled(enabled=False) is None
        assert scaled(clip=lambda model: None) is None


@pytest.fixture
def held():
    """Calls are heard before anything is watched, as `diagnose run` has it."""
    release = calls.hold(lambda fault: None)
    yield
    release()


@pytest.mark.usefixtures("held")
class TestLoads:
    def test_of_live_weights_after_more_steps(self):
        (stale,) = watched(end=lambda model, kept: model.load_state_dict(kept))[RestoreFacts].stale
        assert (stale.taken_after, stale.used_after, stale.by_itself, stale.tensors) == (4, 6, True, 4)

    @pytest.mark.parametrize("kept", [dict, copy.copy, lambda state: {n: t for n, t in state.items()}])  # noqa: C416
    def test_of_other_dicts_of_the_same_tensors(self, kept):
        facts = watched(first=lambda m: kept(m.state_dict()), end=lambda model, kept: model.load_state_dict(kept))
        (stale,) = facts[RestoreFacts].stale
        assert (stale.taken_after, stale.used_after) == (0, 6)

    @pytest.mark.parametrize(
        "kept",
        [
            lambda model: copy.deepcopy(model.state_dict()),
            lambda model: {name: tensor.clone() for name, tensor in model.state_dict().items()},
            lambda model: copy.deepcopy(model).state_dict(),
        ],
    )
    def test_of_copies(self, kept):
        facts = watched(first=kept, end=lambda model, kept: model.load_state_dict(kept))[RestoreFacts]
        assert (facts.loads, facts.num_stale) == (1, 0)

    def test_right_away(self):
        facts = watched(after_step=lambda model: model.load_state_dict(model.state_dict()))[RestoreFacts]
        assert (facts.loads, facts.num_stale) == (6, 0)

    def test_from_a_file(self):
        def saved(model):
            torch.save(model.state_dict(), buffer := io.BytesIO())
            buffer.seek(0)
            return buffer

        facts = watched(first=saved, end=lambda model, kept: model.load_state_dict(torch.load(kept)))[RestoreFacts]
        assert facts.num_stale == 0

    def test_of_a_state_with_weights_of_another(self):
        def end(model, kept):
            model.load_state_dict(kept | {"0.weight": torch.zeros(16, 8)})

        assert watched(end=end)[RestoreFacts].num_stale == 0

    def test_into_another_model(self):
        (stale,) = watched(end=lambda _, kept: mlp().load_state_dict(kept))[RestoreFacts].stale
        assert (stale.by_itself, stale.times_taken) == (False, 1)

    def test_into_another_model_of_weights_that_are_latest(self):
        facts = watched(after_step=lambda model: mlp().load_state_dict(model.state_dict()))
        assert facts[RestoreFacts].num_stale == 0


def test_all_patches_are_taken_off():
    for listener in list(calls._listeners):  # of a watch that another test left open
        calls.leave(listener)
    before = nn.Module.state_dict, nn.Module.load_state_dict, torch.autograd.backward
    release = calls.hold(lambda fault: None)
    watched(after_step=clips)
    assert nn.Module.state_dict is not before[0]
    release()
    assert (nn.Module.state_dict, nn.Module.load_state_dict, torch.autograd.backward) == before


class TestCollectedStateDicts:
    def held(self, keep):
        kept = []
        facts = watched(after_step=lambda model: keep(kept, model)).get(RestoreFacts)
        return 0 if facts is None else facts.held

    def test_in_a_list(self):
        assert self.held(lambda kept, model: kept.append(model.state_dict())) == 6

    def test_also_where_files_are_written_beside(self):
        def keep(kept, model):
            torch.save(model.state_dict(), io.BytesIO())
            kept.append(model.state_dict())
            torch.save(model.state_dict(), io.BytesIO())

        assert self.held(keep) == 6

    @pytest.mark.parametrize(
        "copied", [copy.deepcopy, lambda state: {key: one.clone() for key, one in state.items()}]
    )
    def test_of_copies(self, copied):
        assert self.held(lambda kept, model: kept.append(copied(model.state_dict()))) < 2

    def test_of_the_parameters_themselves(self):
        assert self.held(lambda kept, model: kept.append(model.state_dict(keep_vars=True))) < 2

    def test_of_the_latest_and_the_best(self):
        def keep(kept, model):
            kept[1:] = [model.state_dict()]
            if len(kept) == 1:
                kept.insert(0, kept[0])

        assert self.held(keep) <= 3


@pytest.mark.usefixtures("held")
class TestKeptWeights:
    def test_collected_after_their_trainings(self):
        heard, states = [], []
        release = calls.hold(lambda fault: None, lambda model, facts: heard.append(facts))
        model = mlp()
        for _ in range(6):
            watch = TorchWatcher(model, [optimizer := torch.optim.SGD(model.parameters(), lr=0.05)], 2)
            optimizer.zero_grad()
            inputs, labels = batch(0)
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            watch.close()
            states.append(model.state_dict())
        release()
        assert [facts.held for facts in heard] == [4]

    def test_that_are_the_best_by_chance(self):
        kept = []

        def keeps(model):
            kept[:] = [model.state_dict()]

        facts = watched(after_step=keeps, end=lambda model, _: model.load_state_dict(kept[0]))[RestoreFacts]
        (stale,) = facts.stale
        assert (stale.taken_after, stale.used_after, stale.by_itself) == (6, 6, True)

    def test_loaded_after_their_training(self):
        heard = []
        release = calls.hold(lambda fault: None, lambda model, facts: heard.append((model, facts)))
        model = mlp()
        initial = model.state_dict()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        watch = TorchWatcher(model, [optimizer], 2)
        for step in range(3):
            inputs, labels = batch(step)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        watch.close()
        model.load_state_dict(initial)
        release()
        ((told, facts),) = heard
        assert told is model
        assert (facts.stale[0].taken_after, facts.stale[0].used_after) == (0, 3)


class TestStepOrder:
    def order(self, loop, steps=5):
        torch.manual_seed(0)
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        watch = TorchWatcher(model, [optimizer], 2)
        for step in range(steps):
            inputs, labels = batch(step)
            loop(optimizer, nn.functional.cross_entropy(model(inputs), labels))
        watch.close()
        (found,) = [fact for fact in watch.course() if isinstance(fact, StepOrderFacts)]
        assert watch.faults == {}
        return found

    def test_as_it_should_be(self):
        def loop(optimizer, loss):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        assert self.order(loop) == StepOrderFacts(5, 0, 0, 5, 5, True)

    def test_gradients_cleared_before_the_step(self):
        def loop(optimizer, loss):
            loss.backward()
            optimizer.zero_grad()
            optimizer.step()

        assert self.order(loop) == StepOrderFacts(5, 5, 0, 5, 5, False)

    def test_a_step_before_the_backward_pass(self):
        def loop(optimizer, loss):
            optimizer.zero_grad()
            optimizer.step()
            loss.backward()

        assert self.order(loop) == StepOrderFacts(5, 4, 1, 5, 5, False)

    def test_no_step_at_all(self):
        def loop(optimizer, loss):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step  # noqa: B018

        assert self.order(loop) == StepOrderFacts(0, 0, 0, 5, 5, False)

    def test_no_step_of_its_own_beside_another_training(self):
        assert self.beside(training=True) == (0, 40, 39, False)

    def test_a_model_that_is_only_asked_is_not_cleared_for_a_step(self):
        assert self.beside(training=False) == (0, 20, 0, False)

    def beside(self, training):
        """Clear the gradients of a model whose optimizer never steps."""
        torch.manual_seed(0)
        model, other = mlp(), mlp()
        watch = TorchWatcher(model, [torch.optim.SGD(model.parameters(), lr=0.05)], 2)
        optimizer = torch.optim.SGD(other.parameters(), lr=0.05)
        for step in range(20):
            inputs, labels = batch(step)
            for called in (model, other) if training else (model,):
                model.zero_grad()
                nn.functional.cross_entropy(called(inputs), labels).backward()
                if training:
                    optimizer.step()
        watch.close()
        (found,) = [fact for fact in watch.course() if isinstance(fact, StepOrderFacts)]
        return found.steps, found.passes, found.zeroed, found.moved


class TestLoadedKeys:
    def load(self, state, **options):
        torch.manual_seed(0)
        model = mlp()
        watch = TorchWatcher(model, [torch.optim.SGD(model.parameters(), lr=0.05)], 2)
        model.load_state_dict(state, **options)
        watch.close()
        return [fact for fact in watch.course() if isinstance(fact, LoadedKeys)]

    def test_of_a_wrapped_model(self):
        (found,) = self.load({f"module.{key}": value for key, value in mlp().state_dict().items()}, strict=False)
        assert (found.model, found.keys, found.loaded, len(found.unexpected)) == ("Sequential", 4, 0, 4)
        assert found.where.file == "tests/pytorch/watch/record/test_call_order.py"

    def test_a_part_that_fits_is_no_news(self):
        state = mlp().state_dict()
        assert self.load(state) == []
        del state["0.weight"]
        assert self.load(state, strict=False) == []


def test_losses_scaled_for_a_step_without_the_scaler():
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    scaler = torch.amp.GradScaler("cpu")
    watch = TorchWatcher(model, [optimizer], 2)
    for step in range(6):
        inputs, labels = batch(step)
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(inputs), labels)).backward()
        optimizer.step()
    watch.close()
    (found,) = [fact for fact in watch.course() if isinstance(fact, StepOrderFacts)]
    assert (found.scaled, found.unscaled) == (6, -1)  # this file reads gradients


def test_a_layer_that_was_unfrozen_while_watched():
    torch.manual_seed(0)
    model = mlp()
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.05)
    watch = TorchWatcher(model, [optimizer], 2)
    for step in range(6):
        model[0].requires_grad_(step > 2)
        inputs, labels = batch(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    watch.close()
    (found,) = [fact for fact in watch.course() if isinstance(fact, OptimizerFacts)]
    assert (sorted(found.missing), found.unfrozen) == (["0.bias", "0.weight"], 2)


def test_a_gradient_of_an_earlier_training_is_not_one_since_the_layer_was_unfrozen():
    torch.manual_seed(0)
    model = mlp()
    inputs, labels = batch(0)
    nn.functional.cross_entropy(model(inputs), labels).backward()
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.05)
    watch = TorchWatcher(model, [optimizer], 2)
    for step in range(6):
        inputs, labels = batch(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    model[0].requires_grad_(True)  # for a second stage with an optimizer of its own
    watch.close()
    assert [fact for fact in watch.course() if isinstance(fact, OptimizerFacts)] == []


def test_gradients_that_the_script_computes_itself_pile_up_nowhere():
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    watch = TorchWatcher(model, [optimizer], 2)
    for step in range(6):
        inputs, labels = batch(step)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
    watch.close()
    assert set(watch.history().steps.gradients_zeroed) == {-1}


def test_a_layer_that_was_replaced_while_watched():
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    watch = TorchWatcher(model, [optimizer], 2)
    for step in range(6):
        if step == 3:
            model[2] = nn.Linear(16, 3)
        inputs, labels = batch(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    watch.close()
    (found,) = [fact for fact in watch.course() if isinstance(fact, OptimizerFacts)]
    assert (found.missing, found.held, found.foreign) == ({"2.weight": 48, "2.bias": 3}, 2, 2)
