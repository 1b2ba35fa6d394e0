"""A stand-in is what its original is, and lets it go."""

import weakref

import torch
from torch import nn

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
