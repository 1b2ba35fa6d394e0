"""Further messages, with rule and exception, beside the examples that each row of the table has."""

MORE = [  # further examples, of rows that have theirs and of recognisers that read more than the message
    ("unreadable-checkpoint", "OSError", "Unable to open file (file signature not found)"),
    (
        "unusable-setting",
        "ValueError",
        "Target modules ['q_proj', 'v_proj'] not found in the base model. Please check the target",
    ),
    (
        "unusable-setting",
        "MisconfigurationException",
        "ModelCheckpoint(monitor='val_acc') not found in the returned metrics: ['loss'].",
    ),
    ("installation-mismatch", "AttributeError", "module 'numpy' has no attribute 'float'."),
    (
        "installation-mismatch",
        "TypeError",
        "SFTTrainer.__init__() got an unexpected keyword argument 'dataset_text_field'",
    ),
    ("installation-mismatch", "AttributeError", "'BertTokenizer' object has no attribute 'batch_encode_plus'"),
    ("installation-mismatch", "ImportError", "/opt/lib/libtorch_cuda.so: undefined symbol: cusparseSpSM_analysis"),
    (
        "broadcast-loss",
        "Exception",
        "Error when checking model target: expected conv_7 to have 4 dimensions, but got array"
        " with shape (32L, 1L).",
    ),
    ("shape-mismatch", "ValueError", "operands could not be broadcast together with shapes (60,4) (24,2,60,16)"),
]

_BACKWARD = """\
Traceback (most recent call last):
  File "/home/ada/finetune.py", line 88, in <module>
    trainer.train()
  File "/opt/lib/python3.10/site-packages/transformers/trainer.py", line 2770, in training_step
    self.accelerator.backward(loss)
  File "/opt/lib/python3.10/site-packages/torch/autograd/__init__.py", line 200, in backward
    Variable._execution_engine.run_backward(
RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn
"""
_WAITED = (
    "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1931, OpType=ALLREDUCE, "
    "NumelIn=70, NumelOut=70, Timeout(ms)=600000) ran for 600061 milliseconds before timing out."
)
_ABORT = f"""\
[rank1]:[E1102 08:21:11.124 ProcessGroupNCCL.cpp:616] {_WAITED}
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [Rank 1] NCCL watchdog thread terminated with exception: {_WAITED}
"""
_TORCHRUN = """\
Traceback (most recent call last):
  File "/opt/lib/python3.10/site-packages/torch/distributed/launcher/api.py", line 264, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
Root Cause (first observed failure):
[0]:
  rank      : 1 (local_rank: 1)
  exitcode  : -6 (pid: 4242)
============================================================
"""
_CAST = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 41, in <module>
    model.fit(x, y, epochs=3)
  File "/opt/lib/python3.10/site-packages/tensorflow/python/eager/execute.py", line 54, in quick_execute
    tensors = pywrap_tfe.TFE_Py_Execute(ctx._handle, device_name, op_name,
tensorflow.python.framework.errors_impl.UnimplementedError: Graph execution error:

Cast string to float is not supported
\t [[{{node binary_crossentropy/Cast}}]] [Op:__inference_train_function_1283]
"""
_MAPPED = """\
def encode(rows):
    found = tokenizer(rows["text"], truncation=True)

    found["labels"] = rows["label"]{end}

data = data.map(encode)
IndexError: Invalid key: 3 is out of bounds for size 0
"""
_NCCL = "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:784, unhandled system error, NCCL version 2.7.8\n"
_GROUPS = (
    "ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group\n"
)
_NO_ACCELERATE = (
    "ImportError: Using the `Trainer` with `PyTorch` requires `accelerate>=0.26.0`: Please run `pip install`"
)
_DEVICES = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
_ARGUMENT = f"RuntimeError: {_DEVICES} (when checking argument for argument weight in method wrapper_CUDA_"
_IN_FORWARD = f"""\
Traceback (most recent call last):
  File "/home/ada/train.py", line 31, in <module>
    logits = model(images.to(device))
  File "{{file}}", line 18, in forward
    {{line}}
    ~~~~^~~~
RuntimeError: {_DEVICES}
"""
_BATCH = "move the batch to the model's device"
WHOLE = {  # texts of which the message alone is not enough, with rule and the beginning of the first fix
    "a warning of checkpointing": (
        "no-gradient",
        "for adapters on a frozen model: model.enable_input_require_grads()",
        f"checkpoint.py:61: UserWarning: None of the inputs have requires_grad=True.\n{_BACKWARD}",
    ),
    "adapters in a sentence": (
        "no-gradient",
        "call model.enable_input_require_grads() before get_peft_model",
        f"I train with a LoraConfig of peft and gradient checkpointing:\n{_BACKWARD}",
    ),
    "no word of adapters": ("no-gradient", "compute the loss from the model's own output", _BACKWARD),
    "a watchdog's abort": ("collective-timeout", "look for the first rank with a traceback", _ABORT),
    "an abort and torchrun": ("collective-timeout", "look for the first rank", _ABORT + _TORCHRUN),
    "torchrun alone": ("launcher-failure", "run torchrun --log-dir logs", _TORCHRUN),
    "a meter that keeps the loss": (
        "out-of-memory",
        "use loss.item() in that line",
        "meter.update(loss, x.size(0))\nRuntimeError: CUDA error: out of memory",
    ),
    "a sum that keeps the loss": (
        "out-of-memory",
        "use loss.item() in that line",
        "    running_loss += loss\nRuntimeError: CUDA error: out of memory",
    ),
    "a meter of numbers": (
        "out-of-memory",
        "halve the batch size",
        "meter.update(loss.item(), x.size(0))\ntotal += loss.item()\nRuntimeError: CUDA error: out of memory",
    ),
    "map without return": ("emptied-dataset", "make encode return the dictionary", _MAPPED.format(end="")),
    "map with return": (
        "emptied-dataset",
        "tokenize the dataset, name the target column",
        _MAPPED.format(end="\n    return found"),
    ),
    "a variable smaller than the card": (
        "out-of-memory",
        "run nvidia-smi",
        "4 * Tesla P100-PCIE-16GB\nResourceExhaustedError: OOM when allocating tensor of shape [563354,256] and "
        "type float\n\t [[Node: embeddings/Adam/Initializer/zeros = Const[dtype=DT_FLOAT]()]]",
    ),
    "a port of init_method": (
        "unusable-setting",
        "use another port in init_method",
        "train.py --init_method tcp://localhost:9999\nRuntimeError: Address already in use",
    ),
    "shared memory that is forbidden": (
        "unreachable-rank",
        "ls -ld /dev/shm must show drwxrwxrwt",
        f"{_NCCL}node:27106 [0] include/shm.h:27 NCCL WARN Call to shm_open failed : Permission denied\n",
    ),
    "shared memory that is full": (
        "unreachable-rank",
        "docker run --shm-size=8g",
        f"node:97 [0] shm.h:48 NCCL WARN Error while creating shared memory segment nccl-shm-recv-1\n{_NCCL}",
    ),
    "a warning of NCCL": (
        "unreachable-rank",
        "if the warning is about a connection",
        "n:1 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]\n"
        f"n:1 [0] misc/socket.cc:4 NCCL WARN Net : Connect to 10.0.0.7 failed : No route to host\n{_NCCL}",
    ),
    "parameter groups of fine-tuning": (
        "checkpoint-keys-mismatch",
        "to resume: use the same options",
        f"I resume with --fine-tune True\n{_GROUPS}",
    ),
    "a package that is installed": (
        "installation-mismatch",
        "restart the kernel or runtime",
        f"{_NO_ACCELERATE}\nI get it even after I pip install it.",
    ),
    "a package that is missing after an upgrade": (
        "installation-mismatch",
        "python -m pip install -U the package that the message names",
        f"{_NO_ACCELERATE}\nIt began after upgrading transformers.",
    ),
    "a package that is missing": (
        "installation-mismatch",
        "python -m pip install -U the package that the message names",
        _NO_ACCELERATE,
    ),
    "text in a loss": ("dtype-mismatch", "encode class names with keras.layers.StringLookup", _CAST),
    "weights of a loss": (
        "device-mismatch",
        "criterion = nn.CrossEntropyLoss(weight=weight.to(device))",
        f"{_ARGUMENT}nll_loss_forward)",
    ),
    "the weight of a layer": (
        "device-mismatch",
        "move the model to the batch's device",
        f"{_ARGUMENT}_cudnn_convolution)",
    ),
    **{
        line: (
            "device-mismatch",
            f'self.register_buffer("{name}", ..., persistent=False) in __init__' if name else _BATCH,
            _IN_FORWARD.format(file="/home/ada/net.py", line=line),
        )
        for line, name in {
            "return self.head(x + self.offset)": "offset",
            "x = x + self.pe[:, : x.size(1)]": "pe",
            "return self.scale * x": "scale",
            "x = torch.cat([self.cls, x], dim=1)": "cls",
            "scores = scores.masked_fill(self.mask[:n, :n] == 0, -1e9)": "mask",
            "return self.layers[0](x) + y": None,
            "return self.head(x) * y": None,
            "x = x.view(-1, self.hidden // 2) + y": None,
        }.items()
    },
    "an attribute of a package's module": (
        "device-mismatch",
        _BATCH,
        _IN_FORWARD.format(file="/venv/lib/python3.12/site-packages/timm/layers/norm.py", line="x * self.scale"),
    ),
}
