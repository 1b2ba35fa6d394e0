"""What a watcher reads reaches the logger, once each, and no fault of a logger reaches the loop."""

import ast
import importlib.util
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import diagnostics
from diagnostics.engine.finding import Finding
from diagnostics.facts.over_time import FixedBatchFacts, Histogram, LayerHistograms, Look
from diagnostics.report.loggers import MetricLogger
from tests.support.courses import recorded

ERROR = Finding("non-finite-loss", "error", "numerics", "The loss is NaN.", "lower it")


def history(count, groups=1, **known):
    plain = {
        "total_steps": count,
        "steps": np.arange(count),
        "layers": ("body", "head"),
        "gradient_norms": np.full(count, 5.0, dtype=np.float32),
        "layer_gradient_norms": np.tile(np.array([[3.0, 4.0]], dtype=np.float32), (count, 1)),
        "learning_rates": np.full((count, groups), 0.25),
        "training_mode": np.ones(count, dtype=np.int8),
        "passes": np.ones(count, dtype=np.int64),
        "gradients_zeroed": np.ones(count, dtype=np.int8),
        "losses": np.linspace(1.0, 0.0, count),
        "sampled_steps": np.array([0]),
        "update_ratios": np.array([[0.5, np.nan]], dtype=np.float32),
        "weight_norms": np.array([[2.0, np.nan]], dtype=np.float32),
    }
    return recorded(**(plain | known))


def handed(*histories, findings=()):
    """All that a function is given, and the faults."""
    given, faults = [], {}
    handover = MetricLogger(lambda values, step: given.append((step, values)), faults)
    for one in histories:
        handover.take(lambda one=one: one)
    handover.end(lambda: findings)
    return given, faults


LOOK = Look(5, 0.5, ("dog | cat", "cat"), (False, True))
BATCH = FixedBatchFacts(2, ("a\nb", "c"), ("cat", "cat"), (LOOK,))
COUNTED = Histogram(np.linspace(-1, 1, 5), np.array([1, 2, 3, 4]), np.zeros(5), 0.5, 2.0, 0, 1.0)
LAYERS = LayerHistograms(5, {"body": COUNTED}, {"body": COUNTED})


def looked(logger):
    """Log one look; return the faults."""
    faults = {}
    MetricLogger(logger, faults).look(LOOK, LAYERS, BATCH)
    return faults


class TestFunction:
    def test_gets_the_loss_of_a_fixed_batch(self):
        given = []
        assert looked(lambda values, step: given.append((step, values))) == {}
        assert given == [(5, {"watch/fixed_batch_loss": 0.5})]

    def test_gets_each_step_once(self):
        given, faults = handed(history(2), history(2), history(3))
        assert [step for step, _ in given] == [0, 1, 2]
        assert faults == {}

    def test_gets_what_is_known_of_a_step_and_of_its_layers(self):
        (_, first), (_, second) = handed(history(2))[0]
        assert first == {
            "watch/loss": 1.0,
            "watch/learning_rate": 0.25,
            "watch/gradient_norm": 5.0,
            "watch_gradient_norm/body": 3.0,
            "watch_gradient_norm/head": 4.0,
            "watch_update_ratio/body": 0.5,  # no optimizer holds the head
            "watch_weight_norm/body": 2.0,
        }
        assert second == {"watch/loss": 0.0, "watch/learning_rate": 0.25, "watch/gradient_norm": 5.0}

    def test_gets_nan_as_nan_and_nothing_for_what_is_not_known(self):
        broken = history(1, losses=np.array([np.nan]), gradient_norms=None)
        ((_, values),) = handed(broken)[0]
        assert math.isnan(values["watch/loss"])
        assert not [name for name in values if "gradient" in name]

    def test_gets_the_rate_of_each_group(self):
        ((_, values),) = handed(history(1, groups=2))[0]
        assert (values["watch/learning_rate_0"], values["watch/learning_rate_1"]) == (0.25, 0.25)

    def test_gets_an_evaluation_once_also_after_the_last_step(self):
        late = history(2, evaluation_steps=np.array([1]), evaluation_losses=np.array([0.75]))
        given, _ = handed(history(2), late, late)
        assert given[-1] == (1, {"watch/evaluation_loss": 0.75})
        assert len(given) == 3

    def test_gets_the_findings_as_numbers_at_the_end(self):
        assert handed(history(2), findings=(ERROR,))[0][-1] == (1, {"watch_error/non-finite-loss": 1.0})

    def test_that_raises_is_left_alone_from_then_on(self):
        calls, faults = [], {}

        def logger(values, step):
            calls.append(step)
            raise ConnectionError("the server is gone")

        handover = MetricLogger(logger, faults)
        handover.take(lambda: history(2))
        handover.take(lambda: history(3))
        handover.end(lambda: (ERROR,))
        assert calls == [0]
        assert faults == {
            "logger": "logging stopped: ConnectionError: the server is gone",
        }


class Writer:
    """Stands for the documented interface of TensorBoard's SummaryWriter; `nox -s trackers` has the real one."""

    def __init__(self):
        self.scalars, self.texts, self.histograms, self.flushed = [], [], [], 0

    def add_scalar(
        self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False
    ):
        self.scalars.append((tag, scalar_value, global_step))

    def add_histogram_raw(
        self,
        tag,
        min,
        max,
        num,
        sum,
        sum_squares,
        bucket_limits,
        bucket_counts,
        global_step=None,
        walltime=None,
    ):
        self.histograms.append((tag, global_step, (min, max), num, sum, sum_squares, bucket_limits, bucket_counts))

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        self.texts.append((tag, text_string, global_step))

    def flush(self):
        self.flushed += 1


class TestTensorBoard:
    def test_gets_scalars_by_step_and_the_findings_as_text(self):
        writer, faults = Writer(), {}
        handover = MetricLogger(writer, faults)
        handover.take(lambda: history(2))
        handover.end(lambda: (ERROR,))
        assert ("watch/loss", 1.0, 0) in writer.scalars
        assert ("watch_update_ratio/body", 0.5, 0) in writer.scalars
        assert ("watch/loss", 0.0, 1) in writer.scalars
        assert writer.texts == [
            ("watch/findings", "error: non-finite-loss\n\nThe loss is NaN.\n\nfix: lower it", 1)
        ]
        assert (writer.flushed, faults) == (1, {})

    def test_gets_a_table_and_histograms_of_each_look(self):
        writer = Writer()
        assert looked(writer) == {}
        assert writer.scalars == [("watch/fixed_batch_loss", 0.5, 5)]
        rows = "| input | target | prediction |\n|---|---|---|\n| a b | cat | dog \\| cat |\n| c | cat | cat |"
        assert writer.texts == [("watch/fixed_batch", rows, 5)]
        assert [tag for tag, *_ in writer.histograms] == ["watch_weights/body", "watch_gradients/body"]
        limits = [-0.5, 0.0, 0.5, 1.0]
        assert writer.histograms[0][1:] == (5, (-1.0, 1.0), 10, 0.5, 2.0, limits, [1, 2, 3, 4])

    def test_is_told_if_nothing_was_found(self):
        writer = Writer()
        MetricLogger(writer, {}).end(tuple)
        assert writer.texts == [("watch/findings", "Nothing found.", 0)]

    @pytest.mark.parametrize("method", ["add_scalar", "add_text", "add_histogram_raw", "flush"])
    def test_the_stand_in_takes_what_the_real_one_takes(self, method):
        # PyTorch ships the real writer's source, which needs a package only to be imported.
        source = Path(importlib.util.find_spec("torch").origin).parent / "utils" / "tensorboard" / "writer.py"
        classes = [node for node in ast.parse(source.read_text()).body if isinstance(node, ast.ClassDef)]
        writer = next(node for node in classes if node.name == "SummaryWriter")
        real = next(n for n in writer.body if isinstance(n, ast.FunctionDef) and n.name == method)
        names = getattr(Writer, method).__code__
        assert list(names.co_varnames[: names.co_argcount]) == [argument.arg for argument in real.args.args]


class Run:
    """Stands for the documented interface of a Weights & Biases run; `nox -s trackers` has a real one.

    As documented, `log` writes to the row of the present step, and goes on to the next unless told not to
    (``commit=False``, or a ``step`` of its own); a row for a step that is past is dropped.
    """

    def __init__(self):
        self.rows, self.defined, self.summary, self.step = {}, {}, {}, 0

    def define_metric(self, name, step_metric=None):
        self.defined[name] = step_metric

    def log(self, data, step=None, commit=None):
        if step is not None and step < self.step:
            return
        self.step = self.step if step is None else step
        self.rows.setdefault(self.step, {}).update(data)
        if (step is None and commit is None) or commit:
            self.step += 1


class TestWeightsAndBiases:
    def test_gets_a_row_for_a_reading_with_the_step_in_it(self):
        run, faults = Run(), {}
        handover = MetricLogger(run, faults)
        handover.take(lambda: history(2))
        handover.take(lambda: history(4))
        handover.end(lambda: (ERROR,))
        assert [row["watch/step"] for row in run.rows.values()] == [0, 3]
        assert run.rows[0]["watch_update_ratio/body"] == 0.5
        assert run.defined["watch/*"] == "watch/step"
        assert run.summary["watch/findings"].startswith("error: non-finite-loss")
        assert faults == {}

    @pytest.mark.parametrize("explicit", [True, False])
    def test_loses_no_row_that_the_loop_logs_itself(self, explicit):
        run = Run()
        handover = MetricLogger(run, {})
        for step in range(20):
            run.log({"mine": step}, **({"step": step} if explicit else {}))
            if step % 4 == 1:
                handover.take(lambda step=step: history(step + 1))
            if explicit:
                run.log({"also mine": step}, step=step)
        assert [row["mine"] for row in run.rows.values() if "mine" in row] == list(range(20))
        if explicit:
            assert [row["also mine"] for row in run.rows.values() if "also mine" in row] == list(range(20))
        assert [row["watch/step"] for row in run.rows.values() if "watch/step" in row] == [0, 5, 9, 13, 17]

    def test_gets_a_table_and_histograms_of_each_look(self, monkeypatch):
        wandb = SimpleNamespace(
            Table=lambda columns, data: (columns, data), Histogram=lambda np_histogram: np_histogram
        )
        monkeypatch.setitem(sys.modules, "wandb", wandb)
        run = Run()
        assert looked(run) == {}
        table, counts = run.rows.values()
        assert table["watch/fixed_batch_loss"] == 0.5
        names, rows = table["watch/fixed_batch"]
        assert (names, rows[1]) == (["input", "target", "prediction"], ["c", "cat", "cat"])
        assert counts["watch_gradients/body"] == ([1, 2, 3, 4], [-1.0, -0.5, 0.0, 0.5, 1.0])
        assert (table["watch/step"], counts["watch/step"]) == (5, 5)
        assert run.defined["watch_gradients/*"] == "watch/step"


class Client:
    """Stands for the documented interface of MLflow's client; `nox -s trackers` has the real one."""

    def __init__(self):
        self.batches, self.texts, self.dicts = [], {}, {}

    def log_batch(self, run_id, metrics=(), params=(), tags=(), synchronous=None):
        assert run_id == "r1"
        assert 0 < len(metrics) <= 1000
        self.batches.append(metrics)

    def log_text(self, run_id, text, artifact_file):
        self.texts[artifact_file] = text

    def log_dict(self, run_id, dictionary, artifact_file):
        self.dicts[artifact_file] = dictionary


def mlflow(client, active=True):
    """Stand for the module."""
    run = SimpleNamespace(info=SimpleNamespace(run_id="r1"))
    return SimpleNamespace(
        MlflowClient=lambda: client,
        active_run=lambda: run if active else None,
        entities=SimpleNamespace(Metric=lambda key, value, timestamp, step: (key, value, step)),
    )


class TestMLflow:
    def test_gets_every_step_in_few_requests_and_the_findings(self):
        client, faults = Client(), {}
        handover = MetricLogger(mlflow(client), faults)
        handover.take(lambda: history(400))
        handover.take(lambda: history(401))
        handover.end(lambda: (ERROR,))
        assert faults == {}
        assert [len(batch) for batch in client.batches] == [1000, 204, 3]
        assert ("watch/loss", 1.0, 0) in client.batches[0]
        assert ("watch_update_ratio/body", 0.5, 0) in client.batches[0]
        assert ("watch/loss", 0.0, 400) in client.batches[-1]
        assert client.texts["watch/findings.txt"].startswith("error: non-finite-loss")

    def test_gets_a_table_and_histograms_of_each_look(self):
        client = Client()
        assert looked(mlflow(client)) == {}
        assert client.batches == [[("watch/fixed_batch_loss", 0.5, 5)]]
        assert client.texts["watch/fixed_batch/step_5.md"].endswith("| c | cat | cat |")
        assert client.dicts["watch/histograms/step_5.json"]["watch_weights/body"]["counts"] == [1, 2, 3, 4]

    def test_a_look_without_a_loss_asks_for_no_metrics(self):
        client, faults = Client(), {}
        MetricLogger(mlflow(client), faults).look(Look(5, None, ("", ""), (None, None)), None, BATCH)
        assert (faults, client.batches) == ({}, [])

    def test_needs_a_run_that_has_begun(self):
        model = nn.Linear(2, 2)
        with pytest.raises(diagnostics.InvalidInput, match=r"no run of it is active.*mlflow\.start_run\(\)"):
            diagnostics.watch(
                model, torch.optim.SGD(model.parameters(), 0.1), logger=mlflow(Client(), active=False)
            )


class TestRefuses:
    @pytest.mark.parametrize(
        ("logger", "named"), [("runs/", "a str"), (Writer, "the class Writer, not an instance of it")]
    )
    def test_what_is_no_logger(self, logger, named):
        model = nn.Linear(2, 2)
        with pytest.raises(diagnostics.InvalidInput) as error:
            diagnostics.watch(model, torch.optim.SGD(model.parameters(), lr=0.1), logger=logger)
        assert str(error.value) == (
            f"watch() was given {named} as logger. It takes a function of a dict and a step, a TensorBoard "
            "SummaryWriter, a Weights & Biases run, or the module mlflow."
        )


class TestWatch:
    def train(self, logger, steps=30):
        torch.manual_seed(0)
        model = nn.Linear(6, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with diagnostics.watch(model, optimizer, every=5, logger=logger) as watch:
            for _ in range(steps):
                inputs = torch.randn(8, 6)
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
                loss.backward()
                optimizer.step()
                watch.step(loss)
        return model.weight.detach(), watch.report()

    def test_hands_over_every_step_while_it_trains(self):
        given = []
        _, report = self.train(lambda values, step: given.append((step, values)))
        steps = [step for step, values in given if "watch/loss" in values]
        assert steps == list(range(30))
        sampled = [step for step, values in given if "watch_update_ratio/Linear" in values]
        assert sampled == [0, 1, 2, 4, 5, 10, 15, 20, 25]
        assert given[7][1]["watch/loss"] == pytest.approx(report.history.losses.values[7])
        assert report.faults == ()

    def test_a_logger_that_raises_is_a_line_in_the_report_and_changes_no_bit(self):
        def broken(values, step):
            raise ConnectionError("the server is gone")

        bare, _ = self.train(None)
        watched, report = self.train(broken)
        assert report.faults == ("logging stopped: ConnectionError: the server is gone",)
        assert torch.equal(bare, watched)
