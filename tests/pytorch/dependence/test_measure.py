"""What the answers of small models depend on, measured on copies of them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.dependence.measure import measure
from diagnostics.collectors.pytorch.dependence.subject import Subject


def subject(model, *inputs, target=None, **options):
    names = [str(number) for number in range(len(inputs))]
    return Subject(
        model=model,
        call=lambda copied, given: copied(*(given[name] for name in names)),
        inputs=dict(zip(names, inputs, strict=True)),
        tested=frozenset(names),
        target=target,
        **options,
    )


def of_rows(model, *shape, **options):
    torch.manual_seed(0)
    return measure(subject(model, torch.randn(32, *shape), target=torch.zeros(32, dtype=torch.long), **options))


class Lambda(nn.Module):
    def __init__(self, function, *layers):
        super().__init__()
        self.function, self.layers = function, nn.ModuleList(layers)

    def forward(self, *inputs):
        return self.function(*inputs, *self.layers)


class TestExamples:
    def test_a_plain_model_answers_each_example_by_itself(self):
        facts = of_rows(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)), 4)
        assert (facts.change, facts.mixing, facts.examples, facts.compared) == (0.0, None, 32, 7)
        assert facts.spread > 0

    def test_a_softmax_over_the_batch_is_named(self):
        facts = of_rows(nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(dim=0)), 4)
        assert (facts.mixing.kind, facts.mixing.shape, facts.mixing.axis) == ("softmax", (32, 3), 0)
        assert facts.ends_in_it
        assert facts.change > 0

    def test_a_recurrent_layer_along_the_batch_is_named_with_its_line(self):
        model = Lambda(lambda x, rnn, head: head(rnn(x)[0][:, -1]), nn.LSTM(6, 8), nn.Linear(8, 3))
        mixing = of_rows(model, 12, 6).mixing
        assert (mixing.kind, mixing.name, mixing.shape) == ("recurrent", "layers.0 (LSTM)", (32, 12, 6))
        assert mixing.where.file == "test_measure.py"

    def test_a_recurrent_layer_along_time_is_not(self):
        rnn = nn.LSTM(6, 8, batch_first=True)
        model = Lambda(lambda x, rnn, head: head(rnn(x)[0][:, -1]), rnn, nn.Linear(8, 3))
        assert of_rows(model, 12, 6).change == 0

    def test_attention_between_the_examples_is_named(self):
        layer = nn.TransformerEncoderLayer(8, 2, 16)
        facts = of_rows(Lambda(lambda x, a, h: h(a(x).mean(1)), layer, nn.Linear(8, 3)), 10, 8)
        assert (facts.mixing.kind, facts.mixing.shape) == ("attention", (32, 10, 8))

    @pytest.mark.parametrize("merged", [False, True])
    def test_a_view_that_moves_no_axis_is_named(self, merged):
        def forward(x, lift, head):  # (time, batch, channels)
            time, batch, _ = x.shape
            hidden = lift(x.reshape(time * batch, -1)) if merged else lift(x)
            return head(hidden.view(batch, time, -1).mean(1))

        given = torch.randn(10, 32, 4)
        model = Lambda(forward, nn.Linear(4, 6), nn.Linear(6, 3))
        facts = measure(subject(model, given, target=torch.zeros(32, dtype=torch.long)))
        assert (facts.mixing.kind, facts.mixing.result) == ("reshape", (32, 10, 6))
        assert facts.change > 0

    def test_a_single_number_for_each_example_is_compared(self):
        facts = of_rows(Lambda(lambda x, head: head(x)[:, 0], nn.Linear(4, 1)), 4)
        assert (facts.change, facts.compared) == (0.0, 7)
        mixed = of_rows(Lambda(lambda x, head: head(x)[:, 0].softmax(0), nn.Linear(4, 1)), 4)
        assert mixed.change > 0

    def test_a_sparse_input_stays_as_it_is(self):
        near = torch.eye(32).to_sparse()

        def forward(x, graph, head):
            return nn.functional.dropout(graph @ head(x), 0.5)

        facts = measure(subject(Lambda(forward, nn.Linear(4, 3)), torch.randn(32, 4), near))
        assert facts.change is None
        assert [found.function for found in facts.dropout] == ["dropout"]

    def test_nodes_of_a_graph_are_not_judged(self):
        near = torch.rand(32, 32)
        facts = of_rows(Lambda(lambda x, layer: near @ layer(x), nn.Linear(4, 3)), 4)
        assert facts.change is None
        assert (
            facts.why_not["examples"]
            == "the predictions for part of a batch do not match those for the whole batch"
        )

    def test_where_positions_look_like_examples_it_is_not_judged(self):
        model = Lambda(lambda x, rnn: rnn(x)[0], nn.GRU(4, 3))
        facts = measure(subject(model, torch.randn(16, 32, 4), target=torch.zeros(16, 32)))
        assert facts.why_not["examples"] == "it is not clear which axis of the inputs is the batch axis"

    @pytest.mark.parametrize("flat", [False, True])
    @pytest.mark.parametrize(("time_first", "batch_first"), [(False, False), (True, True)])
    def test_next_tokens_show_that_a_recurrent_layer_runs_along_the_batch(self, time_first, batch_first, flat):
        facts = self.of_text(time_first, batch_first, flat)
        assert (facts.mixing.kind, facts.mixing.axis) == ("recurrent", int(time_first))
        assert facts.change > 0

    @pytest.mark.parametrize("time_first", [False, True])
    def test_next_tokens_show_that_a_recurrent_layer_runs_along_time(self, time_first):
        facts = self.of_text(time_first, not time_first, True)
        assert (facts.change, facts.examples) == (0.0, 32)

    def of_text(self, time_first, batch_first, flat):
        torch.manual_seed(0)
        text = torch.randint(20, (32, 15))
        given, target = (part.T.contiguous() if time_first else part for part in (text[:, :-1], text[:, 1:]))
        model = Lambda(
            lambda x, words, rnn, head: head(rnn(words(x))[0]),
            nn.Embedding(20, 6),
            nn.GRU(6, 8, batch_first=batch_first),
            nn.Linear(8, 20),
        )
        return measure(subject(model, given, target=target.flatten() if flat else target))

    def test_targets_for_each_position_of_rows_known_to_be_first(self):
        torch.manual_seed(0)
        model = Lambda(lambda x, rnn, head: head(rnn(x)[0]), nn.LSTM(6, 8), nn.Linear(8, 3))
        tags = torch.randint(3, (32 * 12,))
        facts = measure(subject(model, torch.randn(32, 12, 6), target=tags, batch_first=True))
        assert facts.mixing.kind == "recurrent"
        facts = measure(subject(model, torch.randn(32, 12, 6), target=tags[:-12], batch_first=True))
        assert "one target for each example" in facts.why_not["examples"]

    def test_time_that_is_over_is_said(self):
        facts = of_rows(nn.Linear(4, 3), 4, deadline=0.0)
        assert facts.why_not["examples"] == facts.why_not["inputs"] == "there was no time left for this check"

    def test_the_random_state_and_the_mode_of_others_stay(self):
        before = torch.get_rng_state()
        of_rows(nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 3)), 4)
        assert torch.equal(before, torch.get_rng_state())


class TestFuture:
    def judge(self, *layers, target=None, **options):
        torch.manual_seed(0)
        text = torch.randint(20, (16, 13))
        model = nn.Sequential(nn.Embedding(20, 8), *layers)
        target = text[:, 1:].reshape(-1) if target is None else target
        return measure(subject(model, text[:, :-1], target=target, predicts_tokens=True, **options))

    def test_a_bidirectional_layer_leaks(self):
        facts = self.judge(Lambda(lambda x, rnn: rnn(x)[0], nn.GRU(8, 10, batch_first=True, bidirectional=True)))
        assert facts.future.change > 0.01 * facts.future.spread
        assert facts.future.length == 12
        assert facts.future.past > 0.01 * facts.future.spread

    def test_a_layer_that_reads_backwards_sees_no_earlier_token(self):
        facts = self.judge(Lambda(lambda x, rnn: rnn(x.flip(1))[0].flip(1), nn.GRU(8, 20, batch_first=True)))
        assert facts.future.change > 0.01 * facts.future.spread
        assert facts.future.past == 0

    def test_a_causal_layer_does_not(self):
        facts = self.judge(Lambda(lambda x, rnn: rnn(x)[0], nn.GRU(8, 20, batch_first=True)))
        assert facts.future.change == 0

    def test_random_targets_are_not_judged(self):
        facts = self.judge(nn.Linear(8, 20), target=torch.randint(20, (192,)))
        assert facts.future is None
        assert facts.why_not["future"] == "the targets are not the next tokens of one of the inputs"

    def test_an_autoencoder_is_not_judged(self):
        def forward(x, encoder, decoder):
            return decoder(x, encoder(x)[1])[0]

        layers = nn.GRU(8, 20, batch_first=True), nn.GRU(8, 20, batch_first=True)
        facts = self.judge(Lambda(forward, *layers))
        why = "the model may be meant to read the whole text: GRU receives or returns a summary of it"
        assert facts.why_not["future"] == why


class TestInputs:
    def judge(self, function, *layers):
        torch.manual_seed(0)
        given = torch.randn(32, 4), torch.randn(32, 4)
        model = Lambda(function, *layers)
        return measure(subject(model, *given, target=torch.zeros(32, dtype=torch.long))).inputs

    def test_an_input_that_is_never_read(self):
        inputs = self.judge(lambda x, y, layer: layer(x), nn.Linear(4, 3))
        assert (inputs["0"] > 0, inputs["1"]) == (True, 0.0)

    def test_an_input_behind_a_gate_that_is_closed_yet(self):
        gate = nn.Linear(4, 3)
        nn.init.zeros_(gate.weight)
        assert self.judge(lambda x, y, layer, gate: layer(x) + gate(y), nn.Linear(4, 3), gate)["1"] > 0

    def test_an_input_behind_a_closed_gate_is_not_used_for_its_first_example_alone(self):
        gate = nn.Linear(4, 3)
        nn.init.zeros_(gate.weight)
        model = Lambda(lambda x, y, layer, gate: layer(x) + gate(y), nn.Linear(4, 3), gate)
        torch.manual_seed(0)
        given = subject(model, torch.randn(32, 4), torch.randn(32, 4), target=torch.zeros(32, dtype=torch.long))
        assert measure(given).of_first == ()

    def test_an_input_that_is_read_in_training_mode_alone(self):
        inputs = self.judge(lambda x, y, layer: layer(x + y if layer.training else x), nn.Linear(4, 3))
        assert inputs["1"] > 0
