"""What `watch` logs, read back from real trackers, offline: `nox -s trackers` runs this in its own environment."""

import json
import math
import struct
import time

import mlflow
import pytest
import torch
import wandb
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from wandb.proto import wandb_internal_pb2

import diagnostics
from diagnostics.engine.finding import Finding
from diagnostics.report.loggers import Alerts

STEPS, EVERY = 25, 5
BLOCK = 32768  # of a LevelDB log
LOOKS = [0, 1, 2, 5, 10, 20, STEPS]
CURVES = {"watch/loss", "watch/learning_rate", "watch/gradient_norm"}


def trained(logger, during=lambda step: None):
    """Train with a logger; return the weights, the losses, and the report."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    inputs = torch.randn(64, 6)
    labels = inputs[:, :3].argmax(1)
    loss_fn, losses = nn.functional.cross_entropy, []
    batch = diagnostics.FixedBatch(
        inputs[:4], labels[:4], loss_fn, decode_target=("cat", "dog", "bird").__getitem__
    )
    shown = {} if logger is None else {"fixed_batch": batch, "histograms": True}
    with diagnostics.watch(model, optimizer, every=EVERY, logger=logger, **shown) as watch:
        for step in range(STEPS):
            rows = torch.randint(0, 64, (16,))
            optimizer.zero_grad()
            loss = loss_fn(model(inputs[rows]), labels[rows])
            loss.backward()
            optimizer.step()
            watch.step(loss)
            losses.append(loss.item())
            during(step)
    return [p.detach().clone() for p in model.parameters()], losses, watch.report()


@pytest.fixture(autouse=True)
def nothing_leaves_this_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # its database needs more packages
    mlflow.set_tracking_uri(tmp_path.as_uri())
    mlflow.set_experiment("zoo")


@pytest.fixture(scope="module")
def plain():
    return trained(None)


def check_same(run, plain):
    weights, losses, report = run
    assert losses == plain[1]
    assert all(torch.equal(one, other) for one, other in zip(weights, plain[0], strict=True))
    return report


class TestTensorBoard:
    def test_reads_back_what_was_logged(self, plain, tmp_path):
        with SummaryWriter(str(tmp_path)) as writer:
            report = check_same(trained(writer), plain)
        assert report.faults == ()
        read = EventAccumulator(str(tmp_path), {"histograms": 0, "tensors": 0, "scalars": 0}).Reload()
        assert set(read.Tags()["scalars"]) >= CURVES | {"watch/fixed_batch_loss", "watch_weight_norm/0"}
        losses = read.Scalars("watch/loss")
        assert [event.step for event in losses] == list(range(STEPS))
        assert [event.value for event in losses] == pytest.approx(plain[1])
        weights = read.Histograms("watch_weights/2")
        assert [event.step for event in weights] == LOOKS
        assert weights[0].histogram_value.num == 16 * 3 + 3
        assert [event.step for event in read.Histograms("watch_gradients/2")] == LOOKS[:-1]
        (last,) = read.Tensors("watch/fixed_batch/text_summary")[-1].tensor_proto.string_val
        assert "| input | target | prediction |" in last.decode()
        assert "| dog | dog (" in last.decode()

    def test_that_was_closed_does_not_fail_the_training(self, plain, tmp_path):
        writer = SummaryWriter(str(tmp_path))
        report = check_same(trained(writer, lambda step: writer.close() if step == 7 else None), plain)
        assert len(report.faults) <= 1  # it may open a file again
        assert report.ok


def records(file):
    """Read an offline run: a LevelDB log, whose records are messages of W&B's own schema."""
    data, place, whole = file.read_bytes(), 7, b""
    while place + 7 <= len(data):
        if (left := BLOCK - place % BLOCK) < 7:
            place += left
            continue
        _, length, kind = struct.unpack("<IHB", data[place : place + 7])
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield wandb_internal_pb2.Record.FromString(whole)
            whole = b""


def read_run(folder):
    """Return the rows, the summary and the folder of an offline run, once W&B has written its end."""
    (file,) = folder.glob("wandb/offline-run-*/*.wandb")
    deadline = time.monotonic() + 60
    while not any(record.HasField("exit") for record in records(file)):
        assert time.monotonic() < deadline, "W&B wrote no end"
        time.sleep(0.1)
    rows, summary = [], {}
    for record in records(file):
        if record.HasField("history"):
            rows.append({})
        for item in record.history.item:
            *parents, name = item.nested_key or [item.key]
            place = rows[-1]
            for parent in parents:
                place = place.setdefault(parent, {})
            place[name] = json.loads(item.value_json)
        summary |= {item.key: json.loads(item.value_json) for item in record.summary.update if item.key}
        summary |= {
            "/".join(i.nested_key): json.loads(i.value_json) for i in record.summary.update if i.nested_key
        }
    return rows, summary, file.parent


class TestWeightsAndBiases:
    def test_reads_back_what_was_logged(self, plain, tmp_path):
        run = wandb.init(project="zoo", dir=str(tmp_path))
        report = check_same(trained(run), plain)
        run.finish()
        assert report.faults == ()
        rows, summary, folder = read_run(tmp_path)
        for row in rows:
            if "watch/loss" in row:
                assert row["watch/loss"] == pytest.approx(plain[1][row["watch/step"]])
        assert sum("watch/loss" in row for row in rows) >= STEPS // EVERY
        shown = [row for row in rows if "watch/fixed_batch" in row]
        assert [row["watch/step"] for row in shown] == LOOKS
        table = json.loads((folder / "files" / shown[-1]["watch/fixed_batch"]["path"]).read_text())
        assert table["columns"] == ["input", "target", "prediction"]
        assert len(table["data"]) == 4
        assert sum("watch_weights/2" in row for row in rows) == len(LOOKS)
        assert summary["watch/findings"] == "Nothing found."

    def test_that_was_finished_does_not_fail_the_training(self, plain, tmp_path):
        run = wandb.init(project="zoo", dir=str(tmp_path))
        report = check_same(trained(run, lambda step: run.finish() if step == 7 else None), plain)
        assert report.faults[0].startswith("logging stopped: ")
        assert report.ok

    def test_the_rows_of_the_user_are_kept(self, plain, tmp_path):
        run = wandb.init(project="zoo", dir=str(tmp_path))
        check_same(trained(run, lambda step: run.log({"mine": step})), plain)
        run.finish()
        rows, _, _ = read_run(tmp_path)
        assert [row["mine"] for row in rows if "mine" in row] == list(range(STEPS))


class TestMLflow:
    def test_reads_back_what_was_logged(self, plain):
        with mlflow.start_run() as active:
            report = check_same(trained(mlflow), plain)
        assert report.faults == ()
        client, id = mlflow.MlflowClient(), active.info.run_id
        losses = client.get_metric_history(id, "watch/loss")
        assert [metric.step for metric in losses] == list(range(STEPS))
        assert [metric.value for metric in losses] == pytest.approx(plain[1])
        assert set(client.get_run(id).data.metrics) >= CURVES
        table = mlflow.artifacts.load_text(f"runs:/{id}/watch/fixed_batch/step_{STEPS}.md")
        assert table.startswith("| input | target | prediction |")
        drawn = mlflow.artifacts.load_dict(f"runs:/{id}/watch/histograms/step_0.json")
        assert sum(drawn["watch_weights/0"]["counts"]) == 6 * 16 + 16
        assert mlflow.artifacts.load_text(f"runs:/{id}/watch/findings.txt") == "Nothing found."

    def test_whose_store_fails_does_not_fail_the_training(self, plain, tmp_path):
        def delete(step):
            if step == 7:
                for file in sorted(tmp_path.rglob("*"), reverse=True):
                    file.rmdir() if file.is_dir() else file.unlink()

        with mlflow.start_run():
            report = check_same(trained(mlflow, delete), plain)
            assert report.faults[0].startswith("logging stopped: ")
            assert report.ok
            mlflow.set_tracking_uri((tmp_path / "other").as_uri())  # for `with`, which ends the run
            mlflow.tracking.fluent._active_run_stack.get().clear()


class TestAlerts:
    """`diagnose run --alert`."""

    FOUND = (
        Finding("loss-divergence", "error", "optimizer", "The loss rose to 9.", "lower the rate"),
        Finding("unseeded-randomness", "note", "reproducibility", "No seed.", "set one"),
    )

    def test_weights_and_biases_gets_each_error_and_warning_once(self, tmp_path):
        run, alerts = wandb.init(project="zoo", dir=str(tmp_path)), Alerts()
        alerts.send(self.FOUND)
        alerts.send(self.FOUND)
        run.finish()
        read_run(tmp_path)
        (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
        sent = [record.alert for record in records(file) if record.HasField("alert")]
        assert [(one.title, one.text, one.level) for one in sent] == [
            ("error: loss-divergence", "The loss rose to 9.\n\nfix: lower the rate", "ERROR")
        ]

    def test_mlflow_gets_a_tag_for_each_error_and_warning(self):
        with mlflow.start_run() as active:
            Alerts().send(self.FOUND)
        tags = mlflow.MlflowClient().get_run(active.info.run_id).data.tags
        assert {name: tag for name, tag in tags.items() if name.startswith("diagnostics.")} == {
            "diagnostics.loss-divergence": "error: The loss rose to 9."
        }

    def test_a_store_that_fails_is_asked_once(self, tmp_path):
        alerts = Alerts()
        with mlflow.start_run() as active:
            mlflow.MlflowClient().delete_run(active.info.run_id)
            alerts.send(self.FOUND)
            mlflow.MlflowClient().restore_run(active.info.run_id)
            alerts.send((Finding("loss-plateau", "warning", "optimizer", "It stands.", "raise the rate"),))
        assert alerts.fault.startswith("alerts ended: MlflowException: ")
        assert not [tag for tag in mlflow.get_run(active.info.run_id).data.tags if tag.startswith("diagnostics.")]

    def test_no_run_is_begun(self, tmp_path):
        Alerts().send(self.FOUND)
        assert wandb.run is None
        assert mlflow.active_run() is None
        assert mlflow.search_runs(output_format="list") == []
        assert not (tmp_path / "wandb").exists()


def test_a_value_that_is_not_finite_is_logged_as_it_is(tmp_path):
    seen = {}
    with SummaryWriter(str(tmp_path)) as writer, mlflow.start_run() as active:
        for name, logger in (("tensorboard", writer), ("mlflow", mlflow)):
            torch.manual_seed(0)
            model = nn.Linear(2, 1)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            with diagnostics.watch(model, optimizer, logger=logger, every=1) as watch:
                optimizer.zero_grad()
                loss = (model(torch.ones(2, 2)) * math.nan).sum()
                loss.backward()
                optimizer.step()
                watch.step(loss)
            seen[name] = watch.report().faults
        assert seen == {"tensorboard": (), "mlflow": ()}
        (metric,) = mlflow.MlflowClient().get_metric_history(active.info.run_id, "watch/loss")
        assert math.isnan(metric.value)
    (event,) = EventAccumulator(str(tmp_path)).Reload().Scalars("watch/loss")
    assert math.isnan(event.value)
