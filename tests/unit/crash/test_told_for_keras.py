"""Failures of Keras, scikit-learn and what is installed, whose causes general messages do not name."""

import pytest

from diagnostics.api.explain import explain

TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 31, in <module>
    main()
{frames}{error}
"""
CHECKED = "ValueError: Error when checking target: expected dense_4 to have shape {} but got array with shape {}"
LOOP = "ValueError: Tensor `{}` enters the loop with shape (1, 10), but has shape (None, 10) after one iteration."


def told(error, *files):
    """Return the only finding about an error, with frames of these files at the end of its traceback."""
    frames = "".join(f'  File "{file}", line 90, in call\n    return run(x)\n' for file in files)
    (finding,) = explain(TRACEBACK.format(frames=frames, error=error)).findings
    return finding


class TestUnknownLayer:
    @pytest.mark.parametrize("name", ["NameEmbedding", "layers_norm", "Attention2"])
    def test_of_ones_own_needs_custom_objects(self, name):
        finding = told(f"ValueError: Unknown layer: {name}")
        assert "custom_objects" in finding.fix

    def test_without_variables_in_the_file_is_not_of_another_base(self):
        finding = told(
            "ValueError: A total of 1 objects could not be loaded. Example error message for object <Dense>:\n\n"
            "Layer 'dense' expected 2 variables, but received 0 variables during loading. Expected: ['kernel']"
        )
        assert finding.message.startswith("The file contains no weights for the layer dense.")

    def test_with_other_variables_is(self):
        finding = told("ValueError: Layer 'dense' expected 2 variables, but received 4 variables during loading.")
        assert "a model with different layers" in finding.message


class TestTarget:
    def test_of_one_number_is_a_python_list(self):
        finding = told("ValueError: logits and labels must have the same shape ((128, 1) vs ())")
        assert (finding.rule, "np.array(labels)" in finding.fix) == ("broadcast-loss", True)

    def test_with_sizes_of_its_own_is_none(self):
        finding = told("ValueError: logits and labels must have the same shape ((None, 1) vs (None, 5))")
        assert "Python list" not in finding.message

    @pytest.mark.parametrize(("wanted", "given"), [("(1,)", "(10,)"), ("(None, 1)", "(3230, 7)")])
    def test_of_a_row_where_one_number_is_expected_is_one_hot(self, wanted, given):
        finding = told(CHECKED.format(wanted, given))
        assert finding.fix == 'for one-hot labels: loss="categorical_crossentropy"'

    @pytest.mark.parametrize(
        ("wanted", "given"), [("(10,)", "(1,)"), ("(None, 3)", "(150, 1)"), ("(3,)", "(22,)")]
    )
    def test_of_another_width_is_not(self, wanted, given):
        assert "it expects class indices and got one-hot rows" not in told(CHECKED.format(wanted, given)).message


class TestLabelsOfScikitLearn:
    @pytest.mark.parametrize(
        "said",
        [
            "Classification metrics can't handle a mix of unknown and binary targets",
            "unknown format is not supported",
            "Unknown label type: unknown. Maybe you are trying to fit a classifier",
        ],
    )
    def test_of_unknown_kind_are_objects(self, said):
        assert told(f"ValueError: {said}").rule == "dtype-mismatch"

    def test_of_numbers_are_scores(self):
        finding = told("ValueError: Classification metrics can't handle a mix of binary and continuous targets")
        assert finding.rule == "metric-on-logits"

    def test_of_an_unknown_device_are_not_meant(self):
        assert not explain("RuntimeError: device type unknown is not supported").findings


class TestDisk:
    ERROR = "OSError: [Errno 28] No space left on device"

    def test_is_shared_memory_where_a_lock_is_made(self):
        finding = told(self.ERROR, "/opt/venv/lib/python3.8/multiprocessing/synchronize.py")
        assert (finding.rule, "/dev/shm" in finding.message) == ("out-of-memory", True)

    @pytest.mark.parametrize("file", ["torch/serialization.py", "multiprocessing/heap.py", "h5py/_hl/files.py"])
    def test_is_the_disk_elsewhere(self, file):
        text = TRACEBACK.format(
            frames=f'  File "/opt/venv/lib/python3.8/{file}", line 9, in f\n    g()\n', error=self.ERROR
        )
        report = explain(text)
        assert (report.findings, "The disk or the quota is full" in report.crash.nature) == ((), True)


class TestSymbolicTensor:
    def test_of_a_recurrent_layer_is_numpys_release(self):
        said = "Cannot convert a symbolic Tensor (lstm_1/strided_slice:0) to a numpy array."
        assert told(f"NotImplementedError: {said}").fix.startswith('pip install "numpy<1.20"')

    @pytest.mark.parametrize("name", ["Neg_1:0", "mul:0", "dense/BiasAdd:0", "model/lstm/transpose_1:0"])
    def test_elsewhere_is_a_call_of_numpy(self, name):
        finding = told(f"NotImplementedError: Cannot convert a symbolic Tensor ({name}) to a numpy array.")
        assert finding.rule == "refused-call"


class TestLibraries:
    def test_of_others_on_windows_do_not_name_tensorflow(self):
        finding = told(
            "ImportError: DLL load failed while importing _own_ops: The specified module could not be found."
        )
        assert "TensorFlow" not in finding.message

    @pytest.mark.parametrize("library", ["libcudnn.so.8", "cudart64_110.dll"])
    def test_that_tensorflow_misses_leave_it_on_the_cpu(self, library):
        (finding,) = explain(
            f"W dso_loader.cc:64] Could not load dynamic library '{library}'; dlerror: not found"
        ).findings
        assert "runs on the CPU" in finding.message

    def test_of_cudnn_under_pytorch_do_not_name_jax(self):
        assert "JAX" not in told("RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED").message


class TestPickling:
    LOCK = "TypeError: can't pickle _thread.lock objects"

    def test_by_kerass_workers_is_advised_for_fit(self):
        spawn = (
            "C:/Anaconda3/lib/site-packages/keras/utils/data_utils.py",
            "C:/Anaconda3/lib/multiprocessing/reduction.py",
        )
        assert "use_multiprocessing=False" in " ".join(told(self.LOCK, *spawn).alternatives)

    def test_by_a_data_loader_is_advised_for_it(self):
        spawn = "/usr/lib/python3.10/multiprocessing/reduction.py"
        assert "num_workers=0" in " ".join(told(self.LOCK, spawn).alternatives)

    @pytest.mark.parametrize(
        "file", ["/usr/lib/python3.10/copy.py", "/opt/venv/lib/python3.10/site-packages/sklearn/base.py"]
    )
    def test_of_a_whole_object_starts_no_process(self, file):
        finding = told(self.LOCK, file)
        assert (finding.rule, "dataset" in finding.message) == ("refused-call", False)


class TestRows:
    """Shapes that differ along the first axis alone: a smaller last batch meets a size that is written down."""

    INSIDE = (
        "[[{{node gradient_tape/compile_loss/mse/sub/BroadcastGradientArgs}}]] [Op:__inference_multi_step_1174]"
    )
    NODE = "[[node mul_5 (defined at train.py:31) ]] [Op:__inference_distributed_function_435]"

    @pytest.mark.parametrize("node", [NODE, INSIDE])
    def test_are_another_batch_size(self, node):
        finding = told(f"InvalidArgumentError: Incompatible shapes: [32,1] vs. [4,1]\n\t {node}")
        assert finding.rule == "shape-mismatch"
        assert (finding.fix, *finding.alternatives) == (
            "use tf.shape(x)[0] instead of a fixed batch size",
            "set drop_remainder=True, which drops a smaller last batch",
        )

    def test_and_others_in_a_loss_are_the_losss(self):
        finding = told(f"InvalidArgumentError: Incompatible shapes: [32,1] vs. [32,5]\n\t {self.INSIDE}")
        assert finding.rule == "broadcast-loss"

    def test_of_a_loop_of_ones_own_are_not(self):
        text = TRACEBACK.format(frames="", error=LOOP.format("my_scan/Sum:0"))
        assert "unusable-setting" not in [finding.rule for finding in explain(text).findings]


class TestUndefinedSymbol:
    PACKAGES = "ImportError: /opt/venv/lib/python3.11/site-packages"

    @pytest.mark.parametrize(
        ("said", "meant"),
        [
            (
                "libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12",
                "LD_LIBRARY_PATH",
            ),
            ("torch/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister", "LD_LIBRARY_PATH"),
            ("torch/lib/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent", "mkl<2024.1"),
            ("own_ops.so: undefined symbol: _ZN2at4_ops5zeros4callE", "rebuild the package"),
            ("torchvision/_C.so: undefined symbol: _ZN3c104cuda9SetDeviceEi", "rebuild the package"),
        ],
    )
    def test_tells_whose_library_does_not_fit(self, said, meant):
        finding = told(f"{self.PACKAGES}/{said}")
        assert meant in f"{finding.fix} {finding.alternatives}"


class TestUnboundName:
    ERROR = "UnboundLocalError: local variable 'logs' referenced before assignment"

    def test_in_keras_is_of_a_fit_without_a_batch(self):
        keras = "/opt/venv/lib/python3.8/site-packages/tensorflow/python/keras/engine/training.py"
        assert told(self.ERROR, keras).rule == "emptied-dataset"

    def test_in_ones_own_code_is_a_name(self):
        text = TRACEBACK.format(frames="", error=self.ERROR)
        assert explain(text).findings == ()


class TestCallback:
    ERROR = "TypeError: 'float' object is not callable"

    def test_elsewhere_is_pythons_own(self):
        text = TRACEBACK.format(frames="", error=self.ERROR)
        assert "unusable-setting" not in [finding.rule for finding in explain(text).findings]


class TestDataOfFit:
    FIT = "/opt/venv/lib/python3.6/site-packages/keras/engine/training.py"

    @pytest.mark.parametrize("kind", ["list", "int", "str"])
    def test_in_pythons_own_types_is_to_be_arrays(self, kind):
        finding = told(f"AttributeError: '{kind}' object has no attribute 'ndim'", self.FIT)
        assert (finding.rule, "np.array" in finding.fix) == ("refused-call", True)

    @pytest.mark.parametrize("kind", ["DatasetV1Adapter", "NumpyArrayIterator", "DataGenerator"])
    def test_of_the_other_keras_is_named(self, kind):
        finding = told(f"AttributeError: '{kind}' object has no attribute 'shape'", self.FIT)
        assert "tensorflow.keras" in finding.fix

    def test_elsewhere_is_a_tensor_that_is_missing(self):
        finding = told("AttributeError: 'list' object has no attribute 'ndim'")
        assert "passed to fit" not in finding.message

    @pytest.mark.parametrize("shape", ["(0,)", "(0, 0, 6)"])
    def test_without_an_example_was_not_read(self, shape):
        finding = told(f"ValueError: Input to `.fit()` should have rank 4. Got array with shape: {shape}")
        assert finding.rule == "emptied-dataset"


class TestOwnCodeBelowKeras:
    """Code of the user's that Keras calls (train_step, a callback, a schedule) is not Keras's."""

    OWN = "/home/ada/project/gan.py"

    @pytest.mark.parametrize(
        ("error", "keras"),
        [
            ("AttributeError: 'list' object has no attribute 'shape'", "engine/training.py"),
            ("AttributeError: 'Generator' object has no attribute 'shape'", "engine/training.py"),
            ("TypeError: 'float' object is not callable", "callbacks.py"),
            ("UnboundLocalError: local variable 'logs' referenced before assignment", "engine/training.py"),
        ],
    )
    def test_is_not_told_as_keras_s(self, error, keras):
        files = (f"/opt/venv/lib/python3.8/site-packages/keras/{keras}", self.OWN)
        frames = "".join(f'  File "{file}", line 90, in call\n    return run(x)\n' for file in files)
        told = [finding.message for finding in explain(TRACEBACK.format(frames=frames, error=error)).findings]
        assert not any(words in "".join(told) for words in ("fit ", "callback", "no batch"))


@pytest.mark.parametrize(("output", "said"), [("(None, 2)", "SparseCategorical"), ("(None, 1)", "y[..., None]")])
def test_ranks_that_differ_are_told_for_keras_without_a_traceback(output, said):
    (finding,) = explain(
        "ValueError: Arguments `target` and `output` must have the same rank (ndim). "
        f"Received: target.shape=(None,), output.shape={output}"
    ).findings
    assert said in str(finding.fix)
    assert "torch" not in str(finding.fix)


class TestOneExample:
    @pytest.mark.parametrize(
        ("wanted", "given", "fix"),
        [
            ("(None, 20)", "(20,)", "add the batch axis"),
            ("(None, 28, 28)", "(28, 28)", "add the batch axis"),
            ("(None, 28, 28, 1)", "(None, 28, 28)", "set x = x[..., None]"),
        ],
    )
    def test_in_place_of_a_batch_needs_the_batch_axis(self, wanted, given, fix):
        finding = told(
            f'ValueError: Invalid input shape for input Tensor("data:0", shape={given}, dtype=float32). '
            f"Expected shape {wanted}, but input has incompatible shape {given}"
        )
        assert (finding.rule, finding.fix[: len(fix)]) == ("shape-mismatch", fix)
