"""A stand-in is what its original is, and lets it go."""

import gc
import types
import weakref

import pytest
import torch
from torch import nn

from diagnostics.collectors.isolation import weak_twin as module_twins
from diagnostics.collectors.isolation.weak_twin import weak_twin


class TestStandIn:
    def test_of_a_module_has_its_weights_and_mode_now_and_later(self):
        model = nn.Sequential(nn.Linear(2, 3), nn.Dropout())
        twin = weak_twin(model)
        model.eval()
        model.append(nn.Linear(3, 1))
        assert (type(twin), twin.training, len(twin)) == (nn.Sequential, False, 3)
        assert twin[0].weight is model[0].weight

    def test_of_a_module_puts_its_hooks_on_the_module(self):
        model, seen = nn.Linear(2, 3), []
        handle = weak_twin(model).register_forward_hook(lambda *_: seen.append(1))
        model(torch.zeros(1, 2))
        handle.remove()
        model(torch.zeros(1, 2))
        assert seen == [1]

    def test_of_an_optimizer_sees_its_steps_and_rates(self):
        model, seen = nn.Linear(2, 3), []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        twin = weak_twin(optimizer)
        twin.register_step_post_hook(lambda *_: seen.append(1))
        optimizer.step()
        optimizer.param_groups[0]["lr"] = 0.5
        assert (seen, twin.param_groups[0]["lr"]) == ([1], 0.5)

    def test_does_not_keep_its_original_alive(self):
        model = nn.Linear(2, 3)
        twin, reference = weak_twin(model), weakref.ref(model)
        del model
        assert reference() is None
        assert twin.weight.shape == (3, 2)

    def test_is_not_made_of_what_does_something_when_it_goes(self):
        class Closing(nn.Linear):
            def __del__(self):
                pass

        model = Closing(2, 3)
        assert weak_twin(model) is model
        assert weak_twin(3) == 3


def with_own_forward(model):
    model.forward = types.MethodType(type(model).forward, model)


def with_a_trainer(model):
    trainer = types.SimpleNamespace(strategy=types.SimpleNamespace(module=model))
    model.trainer = trainer


def with_a_hook_of_its_own(model):
    model.register_forward_hook(lambda *_: model.size)


def with_a_part_that_knows_it(model):
    model[0].owners = [model]


def with_too_many_objects(model):
    model.rows = [[number] for number in range(100_000)] + [model]


WAYS_BACK = [
    with_own_forward,
    with_a_trainer,
    with_a_hook_of_its_own,
    with_a_part_that_knows_it,
    with_too_many_objects,
]


@pytest.mark.parametrize("lead_back", WAYS_BACK)
class TestOfAModelThatLeadsBackToItself:
    @staticmethod
    def model(lead_back):
        model = nn.Sequential(nn.Linear(2, 3), nn.Dropout())
        model.size, model.config = 3, {"width": [3]}
        lead_back(model)
        return model

    def test_does_not_keep_its_original_alive(self, lead_back):
        model = self.model(lead_back)
        config, weight = model.config, model[0].weight
        twin, reference = weak_twin(model), weakref.ref(model)
        model.eval()
        del model
        gc.collect()
        assert reference() is None
        assert (twin.size, twin.training, twin.config is config) == (3, False, True)
        assert twin[0].weight is weight
        assert twin.eval()(torch.zeros(1, 2)).shape == (1, 3)

    def test_shares_all_attributes_while_the_original_lives(self, lead_back):
        model = self.model(lead_back)
        twin = weak_twin(model)
        gc.collect()
        model.size = 4
        assert vars(twin) is vars(model)
        assert twin.size == 4


def test_searches_a_trainer_that_each_part_of_a_model_knows_only_once(monkeypatch):
    model = nn.Sequential(*(nn.ReLU() for _ in range(50)))
    trainer = types.SimpleNamespace(model=model, log=[[number] for number in range(20_000)])
    for module in model.modules():
        module.trainer = trainer
    twin = weak_twin(model)
    searched, plain = [], gc.get_referents
    monkeypatch.setattr(gc, "get_referents", lambda each: (searched.append(None), plain(each))[1])
    gc.collect()
    assert len(searched) < 3 * module_twins.MOST_OBJECTS
    assert vars(twin) is vars(model)


def test_leaves_a_model_to_a_later_collection_where_collections_take_long(monkeypatch):
    model = nn.Linear(2, 3)
    with_own_forward(model)
    _twin, reference = weak_twin(model), weakref.ref(model)
    del model
    monkeypatch.setattr(module_twins, "AT_FIRST", -1.0)
    monkeypatch.setattr(module_twins, "SHARE", 0.0)
    gc.collect()
    assert reference() is not None
    monkeypatch.setattr(module_twins, "SHARE", 1e9)
    gc.collect()
    assert reference() is None
