"""What CUDA says when a device fails, from exceptions raised with its words and from recorded logs.

The sentences are PyTorch's, TensorFlow's and NVIDIA's own, as users have posted them; no card is needed.
"""

import json
import textwrap
import traceback

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification

import diagnostics
from diagnostics.collectors.crash.read import facts_of_exception
from diagnostics.facts.crash import AsynchronousErrorCrash
from diagnostics.facts.crash.data import LabelBeyondOutputs, TokenBeyondEmbedding
from tests.support.crashes import facts_of_text

ASSERT = """\
CUDA error: device-side assert triggered
CUDA kernel errors might be asynchronously reported at some other API call.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""
KERNEL = (
    "/pytorch/aten/src/ATen/native/cuda/{file}: {kernel}: block: [0,0,0], thread: [3,0,0] Assertion `{check}` "
    "failed."
)
NLL = KERNEL.format(
    file="Loss.cu:245", kernel="nll_loss_forward_reduce_cuda_kernel_2d", check="t >= 0 && t < n_classes"
)
SELECT = KERNEL.format(
    file="Indexing.cu:1422", kernel="indexSelectLargeIndex", check="srcIndex < srcSelectDimSize"
)
GATHER = KERNEL.format(
    file="IndexKernelUtils.cu:16",
    kernel="vectorized_gather_kernel",
    check='ind >=0 && ind < ind_dim_size && "vectorized gather kernel index out of bounds"',
)
SCATTER = KERNEL.format(
    file="ScatterGatherKernel.cu:115",
    kernel="operator()",
    check='idx_dim >= 0 && idx_dim < index_size && "index out of bounds"',
)


def wait(message=ASSERT):
    """Stand for a read of the device: what it raises, PyTorch raises there."""
    raise torch.AcceleratorError(message)


def symptoms(run):
    try:
        run()
    except Exception as error:
        return facts_of_exception(error)[1:]
    raise AssertionError("it did not fail")


def logged(*lines, error=f"RuntimeError: {ASSERT}"):
    frames = (
        'Traceback (most recent call last):\n  File "/home/ada/train.py", line 12, in <module>\n    loss.item()\n'
    )
    return facts_of_text("\n".join(lines) + "\n" + frames + error)[1:]


class TestAsynchronousError:
    @pytest.mark.parametrize(
        ("error", "kind", "said"),
        [
            (f"RuntimeError: {ASSERT}", "assert", "device-side assert triggered"),
            (f"torch.AcceleratorError: simulated {ASSERT}", "assert", "device-side assert triggered"),
            (
                "RuntimeError: CUDA error: an illegal memory access was encountered",
                "memory access",
                "an illegal memory access was encountered",
            ),
            ("RuntimeError: CUDA error: unspecified launch failure", "launch", "unspecified launch failure"),
            (
                "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(handle)`",
                "launch",
                "CUBLAS_STATUS_EXECUTION_FAILED",
            ),
            (
                "tensorflow.python.framework.errors_impl.InternalError: Failed to load in-memory CUBIN: "
                "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered",
                "memory access",
                "CUDA_ERROR_ILLEGAL_ADDRESS",
            ),
        ],
        ids=lambda value: value[:40],
    )
    def test_is_known_by_its_words(self, error, kind, said):
        (symptom,) = logged(error=error)
        assert (symptom.kind, symptom.said) == (kind, said)
        assert symptom.surfaced.line == 12
        assert symptom.simulated == ("simulated" in error)
        assert symptom.candidates == ()
        assert symptom.blocking is None

    @pytest.mark.parametrize(
        ("error", "said"),
        [
            (
                "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
                "CUBLAS_STATUS_NOT_INITIALIZED",
            ),
            (
                "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
                "CUBLAS_STATUS_ALLOC_FAILED",
            ),
            ("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "CUDNN_STATUS_NOT_INITIALIZED"),
        ],
    )
    def test_of_a_library_that_cannot_start_the_table_has_the_cause(self, error, said):
        (symptom,) = logged(error=f"RuntimeError: {error}")
        assert (symptom.rule, symptom.kind, symptom.said) == ("asynchronous-error", "library", said)
        assert said in symptom.cause

    @pytest.mark.parametrize(
        "error",
        [
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            "RuntimeError: CUDA error: invalid device ordinal",
            "AssertionError: Torch not compiled with CUDA enabled",
            "RuntimeError: Found dtype Double but expected Float",
        ],
    )
    def test_is_no_error_whose_line_is_right(self, error):
        assert not any(isinstance(symptom, AsynchronousErrorCrash) for symptom in logged(error=error))

    def test_names_the_kernel_that_the_log_names(self):
        symptom = logged("epoch 1", NLL, NLL)[0]
        assert symptom.kernel == "nll_loss_forward_reduce_cuda_kernel_2d"
        assert symptom.assertion == "t >= 0 && t < n_classes"

    @pytest.mark.parametrize(("value", "blocking"), [("1", True), ("0", False), ("", False), (None, False)])
    def test_knows_from_the_environment_whether_launches_block(self, monkeypatch, value, blocking):
        if value is None:
            monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)
        else:
            monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", value)
        (symptom,) = symptoms(wait)
        assert symptom.blocking is blocking


class TestLabels:
    def test_are_read_from_a_batch_that_stayed_on_the_host(self):
        def step():
            model = nn.Sequential(nn.Linear(4, 2))
            batch = {"x": torch.randn(6, 4), "labels": torch.tensor([0, 1, 2, 1, -100, 2])}
            model(batch["x"])
            wait()

        error, labels = symptoms(step)
        assert isinstance(error, AsynchronousErrorCrash)
        assert isinstance(labels, LabelBeyondOutputs)
        assert (labels.num_outputs, labels.labels.tolist()) == (2, [0, 1, 2, 1, -100, 2])
        assert (labels.ignore_index, labels.labels_from) == (-100, "this batch")

    def test_are_read_from_the_rows_where_the_batch_is_lost_with_the_device(self):
        rows = TensorDataset(torch.zeros(90, 4), torch.arange(90) % 3)

        def train():
            loader = DataLoader(rows, 10)
            for x, y in loader:
                x, y = x.to("meta"), y.to("meta")  # as unreadable as on a lost device
                logits = nn.Linear(4, 2, device="meta")(x)
                assert logits.shape == (len(y), 2)
                wait()

        _, labels = symptoms(train)
        assert labels.num_outputs == 2
        assert labels.labels_from == "the rows of loader that were read"
        assert sorted(set(labels.labels.tolist())) == [0, 1, 2]

    def test_and_the_fix_is_in_the_words_of_the_model(self):
        def step():
            config = DistilBertConfig(dim=8, hidden_dim=8, n_layers=1, n_heads=1, vocab_size=20)
            model = DistilBertForSequenceClassification(config)
            labels = torch.tensor([0, 1, 2])
            wait(f"{model.num_labels} outputs, {len(labels)} labels. {ASSERT}")

        _, labels = symptoms(step)
        assert labels.outputs_setting == "AutoModelForSequenceClassification.from_pretrained(..., num_labels={})"

    def test_within_range_are_not_blamed(self):
        def step():
            labels = torch.tensor([0, 1, 1])
            logits = torch.zeros(3, 2)
            wait(f"{labels} {logits} {ASSERT}")

        assert [type(symptom) for symptom in symptoms(step)] == [AsynchronousErrorCrash]

    def test_out_of_range_are_not_blamed_for_another_error(self):
        def step():
            labels = torch.tensor([0, 1, 2])
            logits = torch.zeros(3, 2)
            wait(f"{labels} {logits} CUDA error: an illegal memory access was encountered")

        assert [type(symptom) for symptom in symptoms(step)] == [AsynchronousErrorCrash]

    def test_are_blamed_where_the_kernel_says_so(self):
        error, labels = logged(NLL)
        assert isinstance(error, AsynchronousErrorCrash)
        assert labels == LabelBeyondOutputs()


class TestTokenIds:
    @pytest.mark.parametrize("line", [SELECT, GATHER], ids=["index select", "gather"])
    def test_are_blamed_where_the_kernel_says_so(self, line):
        error, ids = logged(line)
        assert isinstance(error, AsynchronousErrorCrash)
        assert ids == TokenBeyondEmbedding()

    def test_are_read_from_a_batch_that_stayed_on_the_host(self):
        def step():
            config = DistilBertConfig(dim=8, hidden_dim=8, n_layers=1, n_heads=1, vocab_size=20)
            model = DistilBertForSequenceClassification(config)
            batch = {"input_ids": torch.tensor([[1, 25, 3]]), "labels": torch.tensor([1])}
            wait(f"{model.num_labels} {len(batch)} {ASSERT}")

        error, ids = symptoms(step)
        assert isinstance(error, AsynchronousErrorCrash)
        assert (ids.rows, ids.ids.tolist()) == (20, [1, 25, 3])

    def test_are_not_blamed_for_a_kernel_that_may_be_anything(self):
        assert [type(symptom) for symptom in logged(SCATTER)] == [AsynchronousErrorCrash]


class TestExplain:
    def test_names_the_late_line_and_its_cause(self):
        trace = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>'
        text = f"{NLL}\n{trace}\nRuntimeError: {ASSERT}"
        report = diagnostics.explain(text)
        (cause,) = report.findings
        assert cause.rule == "labels-out-of-range"
        assert [finding.rule for finding in cause.consequences] == ["asynchronous-error"]

    def test_takes_the_line_that_waited_not_the_devices_own_code(self, tmp_path):
        script = tmp_path / "train_on_device.py"
        script.write_text(
            textwrap.dedent("""\
            def __torch_dispatch__(wait):
                wait()

            def main(wait, model, loss_fn):
                for batch in [1, 2]:
                    loss = loss_fn(model(batch))
                    __torch_dispatch__(wait)
            """)
        )
        namespace = {}
        exec(compile(script.read_text(), str(script), "exec"), namespace)
        try:
            namespace["main"](wait, abs, abs)
        except torch.AcceleratorError as error:
            report = diagnostics.explain(error)
            as_text = diagnostics.explain("".join(traceback.format_exception(error)))
        assert report.findings[0].where.line == as_text.findings[0].where.line == 7
        assert report.findings[0].evidence["candidates"] == [
            f"{script}:6 loss = loss_fn(model(batch))",
            f"{script}:7 __torch_dispatch__(wait)",
        ]


class TestSimulatedDevice:
    """The zoo's device, which fails late as a card does."""

    SCRIPT = """
        import torch, diagnostics
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset
        from bugs.lab.device import device as lab_device

        device = lab_device()
        rows = TensorDataset(torch.randn(60, 4), torch.arange(60) % 3)
        loader = DataLoader(rows, 16)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
        loss_fn = nn.CrossEntropyLoss()
        try:
            for inputs, labels in loader:
                logits = model(inputs.to(device))
                loss = loss_fn(logits, labels.to(device))
                loss.backward()
                print(loss.item())
        except torch.AcceleratorError as error:
            print(diagnostics.explain(error).to_json(indent=None))
    """

    @pytest.mark.parametrize("blocking", ["0", "1"])
    def test_is_explained_with_the_line_the_lines_that_remain_and_the_cause(self, torch_forks, tmp_path, blocking):
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(self.SCRIPT))
        environment = {"ZOO_DEVICE": "simulated", "CUDA_LAUNCH_BLOCKING": blocking}
        program = f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
        done = torch_forks.run(program, **environment)
        assert done.returncode == 0, done.stderr
        (labels,) = json.loads(done.stdout.splitlines()[-1])["findings"]
        (late,) = labels["consequences"]
        assert (labels["rule"], labels["evidence"]["highest_label"]) == ("labels-out-of-range", 2)
        assert late["rule"] == "asynchronous-error"
        assert late["evidence"]["line_is_right"] is (blocking == "1")
        code = script.read_text().splitlines()[late["where"]["line"] - 1].strip()
        if blocking == "1":
            assert code == "loss = loss_fn(logits, labels.to(device))"
        else:
            assert code == "print(loss.item())"
            assert [line.partition(" ")[2] for line in late["evidence"]["candidates"]] == [
                "logits = model(inputs.to(device))",
                "loss = loss_fn(logits, labels.to(device))",
                "loss.backward()",
            ]
