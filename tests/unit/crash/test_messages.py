"""Messages of many versions, pasted in two ways, and the rule that explains each.

Wordings of the installed versions came from running the failure (tests/pytorch/crash/test_usage.py does so again);
those of older versions are the frameworks' own.
"""

import pytest

from diagnostics.api.explain import explain

TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 31, in <module>
    train(model, loader)
  File "/home/ada/project/train.py", line 18, in train
    loss = step(model, batch)
{exception}: {message}
"""
LOG = """\
2024-05-02 10:11:12,345 INFO epoch 0
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/ada/project/train.py", line 18, in train
[rank0]:     loss = step(model, batch)
[rank0]: {exception}: {message}
"""

MESSAGES = {
    "unreadable-checkpoint": [
        ("UnpicklingError", "Weights only load failed. In PyTorch 2.6, we changed the default value"),
        ("UnpicklingError", "invalid load key, 'v'."),
        ("RuntimeError", "PytorchStreamReader failed reading zip archive: failed finding central directory"),
        ("SafetensorError", "Error while deserializing header: HeaderTooLarge"),
        ("TypeError", "Could not locate class 'Attention'. Make sure custom classes are decorated with `@keras`"),
        (
            "ValueError",
            "Unknown layer: 'Attention'. Please ensure you are using a `keras.utils.custom_object_scope`",
        ),
        (
            "TypeError",
            "Could not deserialize class 'Functional' because its parent module keras.src.models.functional "
            "cannot be imported.",
        ),
        ("OSError", "Unable to open file (file signature not found)"),
    ],
    "unusable-setting": [
        ("ValueError", "Target modules ['q_proj', 'v_proj'] not found in the base model. Please check the target"),
        (
            "MisconfigurationException",
            "ModelCheckpoint(monitor='val_acc') not found in the returned metrics: ['loss'].",
        ),
        (
            "RuntimeError",
            "Early stopping conditioned on metric `val_loss` which is not available. Pass in or modify your "
            "`EarlyStopping` callback to use any of the following: `loss`",
        ),
        (
            "ValueError",
            "Please correct the following DeepSpeed config values that mismatch TrainingArguments values:\n"
            "- ds train_batch_size=8 vs hf train_batch_size (calculated)=4",
        ),
        (
            "ValueError",
            "--load_best_model_at_end requires the save and eval strategy to match, but found steps, epoch",
        ),
        ("RuntimeError", "Address already in use"),
    ],
    "unbatchable-example": [
        (
            "TypeError",
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
            "<class 'NoneType'>",
        ),
        ("ArrowInvalid", "Column 1 named tokens expected length 512 but got length 1000"),
    ],
    "dtype-mismatch": [
        ("RuntimeError", "expected dtype Float but got dtype Long"),
        (
            "TypeError",
            "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.",
        ),
        ("RuntimeError", "mat1 and mat2 must have the same dtype, but got Double and Float"),
        ("RuntimeError", "mat1 and mat2 must have the same dtype"),
        ("RuntimeError", "expected m1 and m2 to have the same dtype, but got: float != double"),
        ("RuntimeError", "expected scalar type Float but found Double"),
        ("RuntimeError", "expected scalar type Half but found Float"),
        (
            "RuntimeError",
            "Expected object of scalar type Float but got scalar type Double for argument #2 "
            "'mat1' in call to _th_addmm",
        ),
        (
            "RuntimeError",
            "Expected object of type torch.FloatTensor but found type torch.DoubleTensor for argument #2 'mat2'",
        ),
        ("RuntimeError", "Input type (double) and bias type (float) should be the same"),
        (
            "RuntimeError",
            "Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) should be the same",
        ),
        ("RuntimeError", "Found dtype Double but expected Float"),
        ("RuntimeError", "expected target dtype to be Long or Byte, but got Float"),
        ("RuntimeError", "expected scalar type Long but found Float"),
        ("RuntimeError", "\"nll_loss_forward_reduce_cuda_kernel_2d_index\" not implemented for 'Int'"),
        (
            "RuntimeError",
            "Expected tensor for argument #1 'indices' to have one of the following scalar "
            "types: Long, Int; but got "
            "torch.FloatTensor instead (while checking arguments for embedding)",
        ),
        ("RuntimeError", "result type Float can't be cast to the desired output type Long"),
        ("RuntimeError", "\"addmm_impl_cpu_\" not implemented for 'Half'"),
        (
            "RuntimeError",
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            "Got: Long",
        ),
        ("RuntimeError", "Can only calculate the mean of floating types. Got Long instead."),
        ("RuntimeError", "Only Tensors of floating point and complex dtype can require gradients"),
        (
            "TypeError",
            "can't convert np.ndarray of type numpy.object_. The only supported types are: float64, float32",
        ),
        (
            "ValueError",
            "RNN input dtype (torch.float64) does not match weight dtype (torch.float32). Convert input: "
            "input.to(torch.float32), or convert model: model.to(torch.float64)",
        ),
        (
            "TypeError",
            "Input 'y' of 'Mul' Op has type float64 that does not match type float32 of argument 'x'.",
        ),
        (
            "InvalidArgumentError",
            "cannot compute MatMul as input #1(zero-based) was expected to be a float tensor but "
            "is a double tensor",
        ),
    ],
    "graph-misuse": [
        (
            "RuntimeError",
            "Trying to backward through the graph a second time (or directly access saved tensors after they have "
            "already been freed).",
        ),
        (
            "RuntimeError",
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            "[torch.cuda.FloatTensor [64, 128]], which is output 0 of ReluBackward0, is at "
            "version 2; expected version "
            "1 instead.",
        ),
        (
            "RuntimeError",
            "one of the variables needed for gradient computation has been modified by an inplace operation",
        ),
        ("RuntimeError", "a leaf Variable that requires grad is being used in an in-place operation."),
        ("RuntimeError", "a leaf Variable that requires grad has been used in an in-place operation."),
        ("RuntimeError", "grad can be implicitly created only for scalar outputs"),
        (
            "RuntimeError",
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        ),
        (
            "RuntimeError",
            "Can't call numpy() on Variable that requires grad. Use var.detach().numpy() instead.",
        ),
        ("ValueError", "can't optimize a non-leaf Tensor"),
        (
            "RuntimeError",
            "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)",
        ),
    ],
    "checkpoint-keys-mismatch": [
        (
            "RuntimeError",
            'Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "body.weight", "body.bias". '
            '\n\tUnexpected key(s) in state_dict: "module.body.weight", "module.body.bias". ',
        ),
        (
            "ValueError",
            "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
        ),
        ("KeyError", "'unexpected key \"module.encoder.embedding.weight\" in state_dict'"),
    ],
    "batch-of-one": [
        (
            "ValueError",
            "Expected more than 1 value per channel when training, got input size torch.Size([1, 512])",
        ),
        ("ValueError", "Expected more than 1 value per channel when training, got input size [1, 256, 1, 1]"),
    ],
    "mixed-precision-misuse": [
        ("ValueError", "Attempting to unscale FP16 gradients."),
        ("AssertionError", "No inf checks were recorded for this optimizer."),
        ("RuntimeError", "unscale_() has already been called on this optimizer since the last update()."),
        (
            "RuntimeError",
            "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.",
        ),
    ],
    "emptied-dataset": [
        ("IndexError", "Invalid key: 3 is out of bounds for size 0"),
        ("IndexError", "Index 17 out of range for dataset of size 0."),
        ("ValueError", "num_samples should be a positive integer value, but got num_samples=0"),
    ],
    "missing-pad-token": [
        (
            "ValueError",
            "Asking to pad but the tokenizer does not have a padding token. Please select a token to use as "
            "`pad_token` `(tokenizer.pad_token = tokenizer.eos_token e.g.)`",
        ),
        ("ValueError", "Cannot handle batch sizes > 1 if no padding token is defined."),
    ],
    "installation-mismatch": [
        ("AttributeError", "module 'numpy' has no attribute 'float'."),
        ("TypeError", "SFTTrainer.__init__() got an unexpected keyword argument 'dataset_text_field'"),
        ("AttributeError", "'BertTokenizer' object has no attribute 'batch_encode_plus'"),
        ("ImportError", "cannot import name 'AdamW' from 'transformers' (/opt/lib/transformers/__init__.py)"),
        ("ImportError", "/opt/lib/libtorch_cuda.so: undefined symbol: cusparseSpSM_analysis"),
        ("RuntimeError", "CUDA error: no kernel image is available for execution on the device"),
        (
            "RuntimeError",
            "The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver",
        ),
        ("AssertionError", "Torch not compiled with CUDA enabled"),
        (
            "RuntimeError",
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu')",
        ),
        ("RuntimeError", "operator torchvision::nms does not exist"),
        (
            "ValueError",
            "numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88",
        ),
        ("RuntimeError", "Numpy is not available"),
        ("ImportError", "libcudart.so.11.0: cannot open shared object file: No such file or directory"),
        (
            "ImportError",
            "Using the `Trainer` with `PyTorch` requires `accelerate>=0.26.0`: Please run `pip install`",
        ),
    ],
    "worker-failure": [
        (
            "RuntimeError",
            "An attempt has been made to start a new process before the current process has finished its "
            "bootstrapping phase.",
        ),
        (
            "RuntimeError",
            "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
            "'spawn' start method",
        ),
        ("RuntimeError", "DataLoader worker (pid(s) 2312, 9108) exited unexpectedly"),
        ("RuntimeError", "DataLoader worker (pid 4242) is killed by signal: Segmentation fault."),
        ("RuntimeError", "received 0 items of ancdata"),
        ("OSError", "[Errno 24] Too many open files"),
    ],
    "collective-timeout": [
        (
            "DistBackendError",
            "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=112, "
            "OpType=ALLREDUCE, NumelIn=1, "
            "NumelOut=1, Timeout(ms)=600000) ran for 600032 milliseconds before timing out.",
        ),
        ("RuntimeError", "Timed out waiting 1800000ms for recv operation to complete"),
        ("DistStoreError", "Timed out after 601 seconds waiting for clients. 3/4 clients joined."),
    ],
    "broadcast-loss": [
        (
            "ValueError",
            "A target array with shape (73, 458, 3) was passed for an output of shape (None, 460, 3) while "
            "using as loss `mse`.",
        ),
        (
            "Exception",
            "Error when checking model target: expected conv_7 to have 4 dimensions, but got array with shape "
            "(32L, 1L).",
        ),
        ("RuntimeError", "0D or 1D target tensor expected, multi-target not supported"),
        ("RuntimeError", "1D target tensor expected, multi-target not supported"),
        (
            "RuntimeError",
            "only batches of spatial targets supported (3D tensors) but got targets of dimension: 4",
        ),
        (
            "InvalidArgumentError",
            "logits and labels must have the same first dimension, got logits shape [1,50] and labels shape [50]",
        ),
        ("ValueError", "Shapes (None, 1) and (None, 5) are incompatible"),
        ("ValueError", "`logits` and `labels` must have the same shape, received ((None, 1) vs (None, 5))."),
        ("ValueError", "logits and labels must have the same shape ((None, 1) vs (None, 5))"),
        (
            "ValueError",
            "Error when checking target: expected dense_3 to have shape (10,) but got array with shape (1,)",
        ),
    ],
    "unused-in-ddp": [
        (
            "RuntimeError",
            "Expected to have finished reduction in the prior iteration before starting a new one. This error "
            "indicates that your module has parameters that were not used in producing loss. "
            "Parameter indices which "
            "did not receive grad for rank 1: 2 3",
        ),
        (
            "RuntimeError",
            "Expected to have finished reduction in the prior iteration before starting a new one.",
        ),
    ],
    "shape-mismatch": [
        ("RuntimeError", "Expected hidden[0] size (2, 4, 256), got (2, 64, 256)"),
        ("ValueError", "cannot reshape array of size 3000 into shape (100,5,30)"),
        ("ValueError", "operands could not be broadcast together with shapes (60,4) (24,2,60,16)"),
        (
            "RuntimeError",
            "Sizes of tensors must match except in dimension 0. Got 2 and 65 (The offending index is 0)",
        ),
        (
            "RuntimeError",
            "While copying the parameter named fc.weight, whose dimensions in the model are "
            "torch.Size([8, 4]) and whose dimensions in the checkpoint are torch.Size([3, 4]).",
        ),
        (
            "RuntimeError",
            "Calculated padded input size per channel: (3 x 3). Kernel size: (5 x 5). Kernel "
            "size can't be greater than "
            "actual input size",
        ),
        (
            "RuntimeError",
            "Given input size: (1x3x3). Calculated output size: (1x0x0). Output size is too small",
        ),
        ("ValueError", "Data cardinality is ambiguous: x sizes: 100 y sizes: 90. Make sure all arrays contain"),
        ("RuntimeError", "size mismatch, m1: [32 x 400], m2: [120 x 84] at /pytorch/aten/src/TH/generic"),
        (
            "RuntimeError",
            "Sizes of tensors must match except in dimension 1. Got 70 and 71 in dimension 2 "
            "(The offending index is 1)",
        ),
        (
            "RuntimeError",
            "Expected 4-dimensional input for 4-dimensional weight [6, 3, 5, 5], but got "
            "3-dimensional input of size "
            "[3, 32, 32] instead",
        ),
        (
            "ValueError",
            "Input 0 of layer conv2d is incompatible with the layer: expected ndim=4, found "
            "ndim=3. Full shape received: "
            "[None, 28, 28]",
        ),
        ("ValueError", "Input 0 is incompatible with layer lstm_1: expected ndim=3, found ndim=2"),
        (
            "ValueError",
            "Error when checking input: expected dense_1_input to have shape (784,) but got "
            "array with shape (28,)",
        ),
        (
            "ValueError",
            "Error when checking input: expected conv2d_1_input to have 4 dimensions, but got array with shape "
            "(60000, 28, 28)",
        ),
    ],
    "no-gradient": [
        ("ValueError", "No gradients provided for any variable: ['dense/kernel:0', 'dense/bias:0']."),
        ("RuntimeError", "element 0 of tensors does not require grad and does not have a grad_fn"),
    ],
    "ragged-batch": [
        (
            "ValueError",
            "Unable to create tensor, you should probably activate truncation and/or padding with 'padding=True' "
            "'truncation=True' to have batched tensors with the same length.",
        ),
        (
            "RuntimeError",
            "stack expects each tensor to be equal size, but got [3, 224, 224] at entry 0 and "
            "[3, 180, 224] at entry 1",
        ),
    ],
    "device-mismatch": [
        (
            "TypeError",
            "can't convert CUDA tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
        ),
        (
            "RuntimeError",
            "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input "
            "should be a MKLDNN tensor and weight is a dense tensor",
        ),
        (
            "RuntimeError",
            "Expected object of device type cuda but got device type cpu for argument #1 'self' "
            "in call to _th_index_select",
        ),
        (
            "RuntimeError",
            "Expected object of backend CPU but got backend CUDA for argument #4 'mat1'",
        ),
        ("RuntimeError", "indices should be either on cpu or on the same device as the indexed tensor (cpu)"),
        (
            "TypeError",
            "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the "
            "tensor to host memory first.",
        ),
    ],
}
CASES = [(rule, *case) for rule, cases in MESSAGES.items() for case in cases]


@pytest.mark.parametrize("form", [TRACEBACK, LOG], ids=["traceback", "log"])
@pytest.mark.parametrize(("rule", "exception", "message"), CASES, ids=[f"{c[0]}-{c[2][:60]}" for c in CASES])
def test_pasted_message_is_explained(rule, exception, message, form):
    lines = message.replace("\n", "\n[rank0]: ") if form is LOG else message
    text = form.format(exception=exception, message=lines)
    assert [finding.rule for finding in explain(text).findings] == [rule]


@pytest.mark.parametrize(("rule", "exception", "message"), CASES, ids=[f"{c[0]}-{c[2][:60]}" for c in CASES])
@pytest.mark.parametrize(
    "quoted",
    [
        "I get `{}` after a while",
        "{}",
        'The error is: "{}". Any idea?',
        "**{}**<br/>",
        "RuntimeError\N{FULLWIDTH COLON}{}",
    ],
    ids=["backticks", "bare", "quotes", "bold", "wide colon"],
)
def test_message_alone_is_explained(rule, exception, message, quoted):
    assert [finding.rule for finding in explain(quoted.format(message)).findings] == [rule]


class TestLauncher:
    TAIL = """\
  File "/opt/conda/lib/python3.10/site-packages/torch/distributed/launcher/api.py", line 264, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2024-05-02_10:11:12
  host      : node1
  rank      : 2 (local_rank: 2)
  exitcode  : -11 (pid: 4242)
  error_file: <N/A>
  traceback : Signal 11 (SIGSEGV) received by PID 4242
============================================================
"""

    def test_a_tail_alone_names_rank_and_signal(self):
        (finding,) = explain("Traceback (most recent call last):\n" + self.TAIL).findings
        assert finding.rule == "launcher-failure"
        assert finding.message == (
            "Rank 2 was ended by SIGSEGV (exit code -11), and torchrun reports only that. The cause is in that "
            "process's own output, above this text or in its log."
        )

    @pytest.mark.parametrize("code", ["-11", "1"])
    def test_a_workers_own_traceback_comes_first(self, code):
        worker = TRACEBACK.format(exception="RuntimeError", message="expected scalar type Float but found Double")
        tail = self.TAIL.replace("exitcode  : -11", f"exitcode  : {code}")
        report = explain(f"{worker}\nTraceback (most recent call last):\n{tail}")
        assert [finding.rule for finding in report.findings] == ["dtype-mismatch"]


class TestSpawn:
    CHILD = """\
Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "C:\\Python310\\lib\\multiprocessing\\spawn.py", line 116, in spawn_main
    exitcode = _main(fd, parent_sentinel)
  File "C:\\Python310\\lib\\multiprocessing\\spawn.py", line 126, in _main
    self = reduction.pickle.load(from_parent)
EOFError: Ran out of input
"""
    PARENT = """\
Traceback (most recent call last):
  File "C:\\work\\train.py", line 40, in <module>
    for batch in loader:
  File "C:\\Python310\\lib\\multiprocessing\\reduction.py", line 60, in dump
    ForkingPickler(file, protocol).dump(obj)
AttributeError: Can't pickle local object 'Images.__init__.<locals>.<lambda>'
"""

    def test_the_child_alone_sends_the_reader_to_the_parent(self):
        (finding,) = explain(self.CHILD).findings
        assert finding.rule == "worker-failure"
        assert "The parent process says which one" in finding.message

    def test_with_the_parent_the_object_is_named(self):
        (finding,) = explain(self.PARENT + self.CHILD).findings
        assert finding.rule == "worker-failure"
        assert "Images.__init__.<locals>.<lambda> cannot be pickled" in finding.message

    def test_pickling_a_model_to_a_file_is_no_workers_failure(self):
        text = TRACEBACK.format(
            exception="AttributeError", message="Can't pickle local object 'main.<locals>.Net'"
        )
        assert explain(text).findings == ()


class TestFixes:
    def fix(self, exception, message):
        (finding,) = explain(TRACEBACK.format(exception=exception, message=message)).findings
        return finding.message, finding.fix

    def test_images_of_several_sizes_are_resized_and_not_padded(self):
        shapes = "[3, 224, 224] at entry 0 and [3, 180, 224] at entry 1"
        message, fix = self.fix("RuntimeError", f"stack expects each tensor to be equal size, but got {shapes}")
        assert "nothing resizes them" in message
        assert fix.startswith("torchvision.transforms.Resize((height, width))")

    def test_a_request_that_is_refused_is_no_want_of_memory(self):
        message, fix = self.fix(
            "RuntimeError",
            "CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; 8.57 MiB already "
            "allocated; 9.28 GiB free; 4.68 MiB cached)",
        )
        assert "memory did not run out: the allocation was refused" in message
        assert fix.startswith("watch nvidia-smi")

    def test_sequences_of_several_lengths_are_padded(self):
        shapes = "[12] at entry 0 and [9] at entry 1"
        message, fix = self.fix("RuntimeError", f"stack expects each tensor to be equal size, but got {shapes}")
        assert "nothing pads the shorter examples" in message
        assert fix.startswith("data_collator=DataCollatorWithPadding")

    def test_one_hot_labels_of_a_sparse_loss_are_not_other_rows(self):
        shapes = "got logits shape [8,5] and labels shape [40]"
        message, fix = self.fix(
            "InvalidArgumentError", f"logits and labels must have the same first dimension, {shapes}"
        )
        assert message == (
            "The loss got 40 labels for 8 predictions of 5 classes: the targets are one-hot, and "
            "this loss reads class "
            "indices."
        )
        assert "argmax" in fix

    def test_class_indices_are_asked_for_and_not_equal_shapes(self):
        message, fix = self.fix("RuntimeError", "1D target tensor expected, multi-target not supported")
        assert message.startswith("The loss reads class indices, one integer per prediction")
        assert fix == "target = target.squeeze(1)  # indices of shape (n, 1)"

    def test_no_gradients_within_fit_points_to_labels_among_the_inputs(self):
        frame = "/usr/lib/python3.8/site-packages/keras/engine/training.py"
        text = TRACEBACK.replace("/home/ada/project/train.py", frame).replace("in train", "in train_step")
        message = "No gradients provided for any variable: ['k:0']."
        report = explain(text.format(exception="ValueError", message=message))
        assert [finding.rule for finding in report.findings] == ["labels-in-inputs"]


def test_positions_of_an_image_of_another_size():
    text = TRACEBACK.format(
        exception="RuntimeError",
        message="The size of tensor a (5) must match the size of tensor b (197) at non-singleton dimension 1",
    ).replace("loss = step(model, batch)", "embeddings = x + self.position_embeddings")
    (finding,) = explain(text).findings
    assert finding.message == (
        "The input has 5 positions, and the model's table of positions 197. As patches of an image, with one "
        "token "
        "for the class, that is 2 x 2 where the model was built for 14 x 14."
    )


def test_a_stranger_s_error_is_none_of_ours():
    for exception, message in [
        ("KeyError", "'learning_rate'"),
        ("ConnectionError", "HTTPSConnectionPool: Max retries exceeded"),
        ("ModuleNotFoundError", "No module named 'my_project'"),
    ]:
        assert explain(TRACEBACK.format(exception=exception, message=message)).findings == ()
