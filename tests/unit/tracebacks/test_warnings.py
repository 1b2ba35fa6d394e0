"""Warnings, and lines of each run that people take for its error: known where a text holds nothing else."""

import pytest

from diagnostics import InvalidInput, explain

STOPPING = (
    "Early stopping conditioned on metric `val_acc` which is not available. Available metrics are: loss,accuracy"
)


class TestWarning:
    @pytest.mark.parametrize(
        "line",
        [
            f"WARNING:tensorflow:{STOPPING}",
            f"/opt/venv/lib/python3.8/site-packages/keras/callbacks.py:846: RuntimeWarning: {STOPPING}",
            f"`{STOPPING}`",
            "WARNING:tensorflow:Can save best model only with val_acc available, skipping.",
            "UserWarning: Learning rate reduction is conditioned on metric `val_loss` which is not available. "
            "Available metrics are: loss,learning_rate.",
        ],
    )
    def test_of_a_callback_that_does_nothing_is_explained(self, line):
        (finding,) = explain(f"Epoch 1/3\n{line}\nEpoch 2/3\n").findings
        assert (finding.rule, "does nothing" in finding.message) == ("unusable-setting", True)

    def test_counts_less_than_an_error_beside_it(self):
        (finding,) = explain(
            f"WARNING:tensorflow:{STOPPING}\nResourceExhaustedError: failed to allocate memory"
        ).findings
        assert finding.rule == "out-of-memory"

    def test_that_nothing_knows_is_refused(self):
        with pytest.raises(InvalidInput):
            explain("UserWarning: the kettle is on\nEpoch 2/3\n")


class TestHarmless:
    @pytest.mark.parametrize(
        "line",
        [
            "E cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to register factory for plugin "
            "cuDNN when one has already been registered",
            "I cpu_feature_guard.cc:142] This TensorFlow binary is optimized with oneDNN to use AVX2",
            "W dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; dlerror: not found",
            "I cuda_gpu_executor.cc:939] successful NUMA node read from SysFS had negative value (-1)",
            "W cpu_allocator_impl.cc:83] Allocation of 1605632000 exceeds 10% of free system memory.",
        ],
    )
    def test_line_is_said_to_be_no_error(self, line):
        report = explain(line)
        assert (report.findings, report.crash.nature.startswith("This line alone is no error.")) == ((), True)

    def test_line_does_not_hide_an_error(self):
        text = "W dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'\nKilled\n"
        assert [finding.rule for finding in explain(text).findings] == ["out-of-memory"]


class TestKernel:
    @pytest.mark.parametrize(
        "text",
        [
            "It keeps dying after model.fit.\n\n_KernelRestarter: restarting kernel (1/5), keep random ports_",
            "Kernel Restarting\nThe kernel appears to have died. It will restart automatically.",
            "Your session crashed for an unknown reason.",
        ],
    )
    def test_that_died_is_told_with_what_tells_its_causes_apart(self, text):
        (finding,) = explain(text).findings
        assert (finding.rule, "in a terminal" in finding.fix) == ("out-of-memory", True)

    def test_of_a_gpu_is_not_meant(self):
        assert [
            f.rule
            for f in explain("CUDA error: no kernel image is available for execution on the device").findings
        ] == ["installation-mismatch"]


class TestLogged:
    """What is logged while the run goes on: told where nothing else is, and never in place of an error."""

    LINES = (
        "W dso_loader.cc:64] Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open "
        "shared object file: No such file or directory",
    )

    @pytest.mark.parametrize("line", LINES)
    def test_is_told_alone(self, line):
        assert [finding.rule for finding in explain(line).findings] == ["installation-mismatch"]

    @pytest.mark.parametrize("line", LINES)
    @pytest.mark.parametrize(
        ("error", "rule"),
        [
            ("I get `Shapes (None, 1) and (None, 5) are incompatible` in model.fit", "broadcast-loss"),
            ("Matrix size-incompatible: In[0]: [32,100], In[1]: [64,10]", "shape-mismatch"),
            ("ResourceExhaustedError: failed to allocate memory", "out-of-memory"),
        ],
    )
    def test_counts_less_than_an_error(self, line, error, rule):
        for text in (f"{line}\n{error}", f"{error}\n{line}"):
            assert [finding.rule for finding in explain(text).findings] == [rule]
