"""What a model takes by itself: PyTorch's and Keras' own arrays are the oracle."""

import pytest
import torch
from datasets import Dataset
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from diagnostics.collectors.crash.frames import read_exception
from diagnostics.collectors.crash.model_memory import model_memory


def crash(run):
    try:
        run()
    except Exception as error:
        return read_exception(error)
    raise AssertionError("it did not fail")


def fail_with(**held):
    raise RuntimeError(", ".join(held))


def need_of(model, optimizer=None, **held):
    return model_memory(crash(lambda: fail_with(model=model, optimizer=optimizer, **held)))


def linear():
    return nn.Sequential(nn.Linear(100, 50), nn.BatchNorm1d(50), nn.Linear(50, 10))


def state_bytes(optimizer):
    tensors = [value for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)]
    return sum(
        tensor.nbytes for tensor in tensors if tensor.ndim
    )  # without counters, of which each weight has one


class TestWeights:
    def test_are_parameters_and_buffers_as_they_are_stored(self):
        model = linear().half()
        need = need_of(model)
        assert need.model == "Sequential"
        assert need.weights == sum(t.nbytes for t in [*model.parameters(), *model.buffers()])
        assert need.gradients == sum(p.nbytes for p in model.parameters())

    def test_that_are_tied_count_once(self):
        model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False))
        model[1].weight = model[0].weight
        assert need_of(model).weights == 8 * 8 * 4

    def test_that_are_frozen_take_no_gradient(self):
        model = linear()
        model[0].requires_grad_(False)
        assert need_of(model).gradients == sum(p.nbytes for p in model.parameters() if p.requires_grad)

    def test_of_the_largest_model_are_meant_not_those_of_its_layer(self):
        model = linear()
        found = model_memory(crash(lambda: model(torch.zeros(4, 99))))
        assert found.model == "Sequential"
        assert found.weights == need_of(model).weights


class TestOptimizerState:
    @pytest.mark.parametrize(
        "make",
        [
            lambda p: torch.optim.AdamW(p),
            lambda p: torch.optim.Adam(p, amsgrad=True),
            lambda p: torch.optim.SGD(p),
            lambda p: torch.optim.SGD(p, momentum=0.9),
            lambda p: torch.optim.RMSprop(p),
            lambda p: torch.optim.RMSprop(p, momentum=0.9, centered=True),
            lambda p: torch.optim.Adagrad(p),
            lambda p: torch.optim.Adadelta(p),
            lambda p: torch.optim.Adamax(p),
            lambda p: torch.optim.NAdam(p),
            lambda p: torch.optim.RAdam(p),
        ],
    )
    def test_is_foretold_as_the_first_step_will_make_it(self, make):
        model = linear()
        optimizer = make(model.parameters())
        foretold = need_of(model, optimizer).optimizer_state
        model(torch.randn(4, 100)).sum().backward()
        optimizer.step()
        assert foretold == state_bytes(optimizer)
        assert need_of(model, optimizer).optimizer_state == state_bytes(optimizer)

    def test_of_an_unknown_kind_is_left_open(self):
        class Own(torch.optim.Optimizer):
            def __init__(self, parameters):
                super().__init__(parameters, {})

        model = linear()
        need = need_of(model, Own(model.parameters()))
        assert (need.optimizer, need.optimizer_state) == ("Own", None)
        assert need.total == need.weights + need.gradients

    def test_and_gradients_are_present_only_after_the_first_step(self):
        model = linear()
        optimizer = torch.optim.AdamW(model.parameters())
        assert need_of(model, optimizer).present == need_of(model).weights
        model(torch.randn(4, 100)).sum().backward()
        optimizer.step()
        need = need_of(model, optimizer)
        assert need.present == need.total


class TestBatch:
    def test_is_the_one_that_the_model_was_called_with(self):
        class Broken(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, input_ids, attention_mask):
                raise RuntimeError("here memory runs out")

        batch = {"input_ids": torch.ones(32, 128, dtype=torch.long), "attention_mask": torch.ones(32, 128)}
        need = model_memory(crash(lambda: Broken()(**batch)))
        assert need.batch_rows == 32

    def test_is_found_in_the_loop_where_the_backward_pass_failed(self):
        def train(model):
            batch = (torch.zeros(16, 3, 8, 8), torch.zeros(16, dtype=torch.long))
            fail_with(model=model, images=batch[0])

        need = model_memory(crash(lambda: train(linear())))
        assert need.batch_rows == 16

    def test_is_left_open_where_there_is_none(self):
        assert need_of(linear()).batch_rows is None


class TestTrainer:
    def test_is_looked_into_for_the_bare_optimizer_and_the_batch(self, tmp_path):
        class Refused(BertForSequenceClassification):
            def forward(self, input_ids, labels):
                if self.bert.pooler.dense.weight.grad is not None:
                    raise RuntimeError("here memory runs out")
                return super().forward(input_ids, labels=labels)

        config = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        model = Refused(BertConfig(vocab_size=20, **config))
        rows = Dataset.from_dict({"input_ids": [[1, 2, 3]] * 32, "labels": [0, 1] * 16})
        arguments = TrainingArguments(
            str(tmp_path), report_to="none", disable_tqdm=True, max_steps=4, per_device_train_batch_size=8,
            gradient_accumulation_steps=2, dataloader_pin_memory=False,
        )  # fmt: skip
        need = model_memory(crash(lambda: Trainer(model, arguments, train_dataset=rows).train()))
        assert (need.model, need.optimizer) == ("Refused", "AdamW")
        assert need.optimizer_state == 2 * sum(p.nbytes for p in model.parameters())
        assert need.batch_rows == 8


class TestNothing:
    def test_is_said_without_a_model(self):
        assert model_memory(crash(lambda: fail_with(model="distilbert", optimizer="adam"))) is None
