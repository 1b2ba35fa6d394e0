"""Further messages, with rule and exception, beside the examples that each row of the table has."""

MORE = [  # further examples, of rows that have theirs and of recognisers that read more than the message
    (
        "unreadable-checkpoint",
        "UnpicklingError",
        "Weights only load failed. In PyTorch 2.6, we changed the default value",
    ),
    ("unreadable-checkpoint", "UnpicklingError", "invalid load key, 'v'."),
    (
        "unreadable-checkpoint",
        "RuntimeError",
        "PytorchStreamReader failed reading zip archive: failed finding central directory",
    ),
    ("unreadable-checkpoint", "SafetensorError", "Error while deserializing header: HeaderTooLarge"),
    (
        "unreadable-checkpoint",
        "TypeError",
        "Could not locate class 'Attention'. Make sure custom classes are decorated with `@keras`",
    ),
    (
        "unreadable-checkpoint",
        "ValueError",
        "Unknown layer: 'Attention'. Please ensure you are using a `keras.utils.custom_object_scope`",
    ),
    (
        "unreadable-checkpoint",
        "TypeError",
        "Could not deserialize class 'Functional' because its parent module keras.src.models.f"
        "unctional cannot be imported.",
    ),
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
    (
        "unusable-setting",
        "RuntimeError",
        "Early stopping conditioned on metric `val_loss` which is not available. Pass in or mo"
        "dify your `EarlyStopping` callback to use any of the following: `loss`",
    ),
    (
        "unusable-setting",
        "ValueError",
        "Please correct the following DeepSpeed config values that mismatch TrainingArguments "
        "values:\n- ds train_batch_size=8 vs hf train_batch_size (calculated)=4",
    ),
    (
        "unusable-setting",
        "ValueError",
        "--load_best_model_at_end requires the save and eval strategy to match, but found steps, epoch",
    ),
    ("unusable-setting", "RuntimeError", "Address already in use"),
    (
        "unbatchable-example",
        "TypeError",
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; f"
        "ound <class 'NoneType'>",
    ),
    ("unbatchable-example", "ArrowInvalid", "Column 1 named tokens expected length 512 but got length 1000"),
    ("dtype-mismatch", "RuntimeError", "expected dtype Float but got dtype Long"),
    (
        "dtype-mismatch",
        "TypeError",
        "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.",
    ),
    ("installation-mismatch", "AttributeError", "module 'numpy' has no attribute 'float'."),
    (
        "installation-mismatch",
        "TypeError",
        "SFTTrainer.__init__() got an unexpected keyword argument 'dataset_text_field'",
    ),
    ("installation-mismatch", "AttributeError", "'BertTokenizer' object has no attribute 'batch_encode_plus'"),
    (
        "installation-mismatch",
        "ImportError",
        "cannot import name 'AdamW' from 'transformers' (/opt/lib/transformers/__init__.py)",
    ),
    ("installation-mismatch", "ImportError", "/opt/lib/libtorch_cuda.so: undefined symbol: cusparseSpSM_analysis"),
    (
        "broadcast-loss",
        "ValueError",
        "A target array with shape (73, 458, 3) was passed for an output of shape (None, 460, "
        "3) while using as loss `mse`.",
    ),
    (
        "broadcast-loss",
        "Exception",
        "Error when checking model target: expected conv_7 to have 4 dimensions, but got array"
        " with shape (32L, 1L).",
    ),
    ("shape-mismatch", "RuntimeError", "Expected hidden[0] size (2, 4, 256), got (2, 64, 256)"),
    ("shape-mismatch", "ValueError", "cannot reshape array of size 3000 into shape (100,5,30)"),
    ("shape-mismatch", "ValueError", "operands could not be broadcast together with shapes (60,4) (24,2,60,16)"),
    (
        "shape-mismatch",
        "RuntimeError",
        "Sizes of tensors must match except in dimension 0. Got 2 and 65 (The offending index is 0)",
    ),
    (
        "shape-mismatch",
        "RuntimeError",
        "While copying the parameter named fc.weight, whose dimensions in the model are torch."
        "Size([8, 4]) and whose dimensions in the checkpoint are torch.Size([3, 4]).",
    ),
    (
        "device-mismatch",
        "TypeError",
        "can't convert CUDA tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
    ),
]
