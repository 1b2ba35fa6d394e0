"""Recognises that a library's installed version lacks what the code, or another library, asks of it.

Python's own words for that (`has no attribute`, `unexpected keyword argument`) come of typing errors and of
objects
of one's own, too. They count here only where a library's class or module is known to be meant: by its name, or
because an installed package made the call.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from diagnostics.collectors.crash.frames import Crash
from diagnostics.facts.crash import CrashFacts, Symptom
from diagnostics.facts.crash.known import KnownFailure
from diagnostics.facts.crash.setup import VersionsDiffer

from .release_history import argument_change, attribute_change

PACKAGES = (
    "numpy|np|scipy|sklearn|pandas|torch|torchvision|torchaudio|torchtext|torchmetrics|tensorflow|tf|keras|tf_keras"
    "|keras_hub|transformers|tokenizers|datasets|accelerate|peft|trl|diffusers|bitsandbytes|huggingface_hub"
    "|safetensors|pytorch_lightning|lightning|lightning_fabric|lightning_utilities|deepspeed|xformers|triton|timm"
    "|sentence_transformers|evaluate|torch_geometric|PIL|jax|jaxlib|flax|optax|numba|apex|mmcv|mmengine|gym|gymnasium"
)
_FURTHER = (
    "dgl|haiku|chex|orbax|detectron2|mmdet|mmseg|mmpose|monai|kornia|albumentations|onnx|onnxruntime|ultralytics"
    "|stable_baselines3|ray|fairseq|torchdata|torchtune|gensim|spacy|librosa|optuna|xgboost|skimage|open_clip|einops"
)
"""What people train with beside them, of which only the words about a module are read here."""
_NO_SUCH_ATTRIBUTE = re.compile(
    rf"module '(?P<owner>(?:{PACKAGES}|{_FURTHER})(?:\.[\w.]+)?)' has no attribute '(?P<name>\w+)'"
)
_CANNOT_IMPORT = re.compile(
    rf"cannot import name '(?P<name>\w+)' from '(?P<owner>(?:{PACKAGES})(?:\.[\w.]+)?)'(?! \(most likely)"
    rf"|No module named '(?P<module>(?:{PACKAGES})\.[\w.]+)'"
)
_ARGUMENT = re.compile(
    r"(?<!\w)(?:(?P<owner>\w+)\.)?__init__\(\) got an unexpected keyword argument '(?P<name>\w+)'"
)
_FUNCTION = re.compile(r"^(?P<owner>\w+)\(\) got an unexpected keyword argument '(?P<name>num_items_in_batch)'")
_OBJECT = re.compile(  # transformers' own classes leave the quotes out, and a text may end before the last
    r"(?<!\w)(?P<owner>\w{1,99})'?(?: object)? has no attribute '?(?P<name>\w{1,99})"
)
_LIBRARY_CLASSES = re.compile(
    r"(?:SFT|DPO|PPO|GRPO|ORPO|KTO|Reward|Seq2Seq|SentenceTransformer)Trainer|(?:SFT|DPO|PPO|GRPO|Lora|BitsAndBytes)"
    r"Config|(?:Seq2Seq)?TrainingArguments|Accelerator|AcceleratorState|Linear(?:4bit|8bitLt)|PeftModel\w*"
    r"|\w+Tokenizer(?:Fast)?|\w+For(?:CausalLM|SequenceClassification|TokenClassification|QuestionAnswering"
    r"|MaskedLM|ConditionalGeneration|Seq2SeqLM)|DynamicCache|ModelCheckpoint|EarlyStopping|DDPStrategy"
    r"|(?:Paged)?(?:Adam|AdamW|AdEMAMix|Lion|SGD|RMSprop|Adagrad|LAMB|LARS)(?:8|32)bit"
    r"|(?:\w{0,80}Lora|TextualInversion|FromSingleFile|FromOriginal)\w{0,80}Mixin|(?:Stable)?Diffusion\w*Pipeline|UNet2DConditionModel"
    r"|\w*ControlNetModel|AutoencoderKL|_FakeLoader"
    r"|(?:Llama|Qwen|Mistral|Mixtral|Gemma|Phi|T5|Whisper|Siglip|Llava|Idefics|Intern(?:LM|VL)|MiniCPM|ChatGLM|Baichuan"
    r"|Bloom|Falcon|Deepseek|Wav2Vec2|PaliGemma)[\dV_]*(?:VL|Moe|Next|Omni|Audio|Text|Vision\w*)?"
    r"(?:Model|Config|Attention|DecoderLayer|Processor|RotaryEmbedding)"  # few classes of one's own
)
_OF_TRAINERS = (
    re.compile(  # what transformers' Trainer calls of itself; classes are derived from it under other names
        r"accelerator|is_fsdp_enabled|is_deepspeed_enabled|use_cuda_amp|use_apex|do_grad_scaling|hp_search_backend"
        r"|_past|_signature_columns|processing_class|label_smoother|compute_loss_context_manager|model_wrapped"
        r"|current_gradient_accumulation_steps|sharded_ddp|create_accelerator_and_postprocess"
    )
)
_OF_TIMM = re.compile(r"(?:pre)?trained_cfg(?:_overlay)?|default_cfg|cache_dir")
_OF_LIGHTNING = re.compile(
    r"accelerator_backend|(?:add|from)_argparse_args|training_type_plugin|train_percent_check|use_ddp2?|gpus|tpu_cores"
    r"|weights_save_path|resume_from_checkpoint|progress_bar_refresh_rate|checkpoint_callback|distributed_backend"
    r"|lr_schedulers|optimizer_frequencies|train_loop|evaluation_loop|(?:data|model|logger|callback|checkpoint)_connector"
    r"|accelerator_connector|call_hook|get_model|on_(?:gpu|tpu)|root_gpu|num_gpus|amp_(?:backend|level)|use_(?:amp|dp|tpu)"
    r"|use_horovod|use_single_gpu|data_parallel(?:_device_ids)?|weights_summary|running_sanity_check|proc_rank|testing"
    r"|request_dataloader|reset_(?:train|val|test)_dataloader|run_evaluation|terminate_on_nan|tune|tuner|lightning_optimizers"
    r"|truncated_bptt_steps|single_gpu|batch_idx|total_batch_idx|run_training_epoch|default_save_path|should_rank_\w+"
    r"|is_world_master|is_local_master|use_apex|use_cuda_amp|do_grad_scaling|sharded_ddp|is_fsdp_xla_enabled|tokenizer"
)
_SCHEDULER = re.compile(r"The provided lr scheduler `(?P<name>\w+)` doesn't follow PyTorch's LRScheduler API")


_OF_KERAS = re.compile(
    r"metrics_tensors|_compile_metrics|_make_(?:train|predict|test)_function|_get_distribution_strategy"
    r"|predict_(?:classes|proba|generator)|(?:fit|evaluate)_generator|uses_learning_phase|_feed_\w+|total_loss"
    r"|_standardize_user_data|stateful_metric_(?:names|functions)|_ckpt_saved_epoch|_network_nodes|_is_graph_network"
    r"|_set_mask_metadata|_inbound_nodes|_in_multi_worker_mode|_collected_trainable_weights|_train_counter"
)


def _versions_differ(crash: Crash) -> VersionsDiffer | None:
    facts = crash.facts
    message, caller = facts.message, calling_package(facts)
    if (change := argument_change(crash)) is not None:
        return VersionsDiffer(change.call, change.name, "argument", caller, change)
    if found := _SCHEDULER.search(message):
        return VersionsDiffer("torch.optim.lr_scheduler", found["name"], "interface", "pytorch_lightning")
    if found := _NO_SUCH_ATTRIBUTE.search(message):
        return _lacking(found["owner"], found["name"], "attribute", caller)
    if found := _CANNOT_IMPORT.search(message):
        owner, name = (found["owner"], found["name"]) if found["owner"] else found["module"].rsplit(".", 1)
        return _lacking(owner, name, "import", caller)
    if found := _ARGUMENT.search(message) or _FUNCTION.search(message):
        owner = found["owner"] or ""
        if caller or _is_library_class(owner, found["name"]):
            return VersionsDiffer(owner, found["name"], "argument", caller)
    if (found := _OBJECT.search(message)) and _is_library_class(found["owner"], found["name"]):
        return _lacking(found["owner"], found["name"], "attribute", caller)
    return None


def _lacking(owner: str, name: str, kind: Literal["attribute", "import"], caller: str | None) -> VersionsDiffer:
    return VersionsDiffer(owner, name, kind, caller, attribute_change(owner, name))


def _is_library_class(owner: str, name: str) -> bool:
    of_keras = owner in ("Model", "Sequential", "Functional", "ModelCheckpoint", "TensorBoard")
    if of_keras and (
        _OF_KERAS.fullmatch(name) or re.match(r"_[a-z]", name)
    ):  # only Keras asks for its private names
        return True
    if owner == "LightningModule":
        return True
    if owner.endswith("Trainer") and _OF_TRAINERS.fullmatch(name):
        return True
    if owner == "Trainer" or not owner:
        return bool(_OF_LIGHTNING.fullmatch(name) or (not owner and _OF_TIMM.fullmatch(name)))
    return bool(_LIBRARY_CLASSES.fullmatch(owner))


_SITE = re.compile(rf"^(?P<package>{PACKAGES})[/\\]|[/\\](?:site|dist)-packages[/\\](?P<at>\w+)[/\\]")
_PASSES_ON = re.compile(r"deprecat|decorat|wrapper|functools|typeguard|contextlib", re.IGNORECASE)


def calling_package(facts: CrashFacts) -> str | None:
    """Return the installed package whose own line failed; None if it is the user's, or is not known.

    A wrapper that only passes the user's arguments on does not count.
    """
    frames = facts.frames
    while frames and frames[-1].function == "__getattr__":  # it only says so: who asked stands before
        frames = frames[:-1]
    if not frames or frames[-1].yours:
        return None
    last = frames[-1]
    if _PASSES_ON.search(f"{last.file} {last.function}") or re.search(r"[(\s]\*\*kwargs\)", last.code or ""):
        return None
    found = _SITE.search(last.file)
    return None if found is None else found["package"] or found["at"]


_OF_TRL = re.compile(r"(?:^|[\\/])trl[\\/]trainer[\\/]|[\\/]unsloth_compiled_cache[\\/]")


def _rows_for_a_batch(crash: Crash) -> KnownFailure | None:
    """Recognise that TRL's own line reads as a batch what another release hands it as a list of rows."""
    last = crash.facts.frames[-1] if crash.facts.frames else None
    if last is None or last.yours or _OF_TRL.search(last.file) is None:
        return None
    if not crash.facts.message.startswith("list indices must be integers or slices, not str"):
        return None
    return KnownFailure(
        "installation-mismatch",
        f"{last.function} of TRL (or of what Unsloth makes of it) reads the batch as a dict, and got a list of "
        "rows: what prepares the batch and what computes the loss are of releases of TRL, transformers and "
        "Unsloth that do not go together. The data are not at fault.",
        (
            "python -m pip install -U trl transformers, and unsloth unsloth_zoo where they are used; then restart",
            "rm -r unsloth_compiled_cache, which keeps the trainers of the release before",
        ),
        crash.facts.message,
    )


RECOGNISERS: tuple[Callable[[Crash], Symptom | None], ...] = (_versions_differ, _rows_for_a_batch)
