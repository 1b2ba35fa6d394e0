"""See `OutOfMemory`."""

from __future__ import annotations

import re

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.memory import ModelMemory, OutOfMemoryCrash
from diagnostics.facts.gpu import in_bytes, listed
from diagnostics.text import join

REFUSED = 100  # times the request was free; the allocator takes at most 20 MiB more than requested
NO_BATCH_HELPS = 0.9  # of the memory: a model that needs more leaves no room for a useful batch
FRAGMENTED = 0.1  # of the reserved memory is unused: less is what the allocator always keeps
MOSTLY_FROZEN = 0.1  # gradients / weights, in bytes: a few hundredths for adapters or a new head on a backbone
_TWO_MOMENTS = ("Adam", "AdamW", "NAdam", "Nadam", "RAdam")

MAYBE_EVALUATION = "if memory ran out during evaluation, evaluate under torch.no_grad(), with a smaller batch"
SEARCH = "search for the largest batch that fits: diagnostics.largest_batch(step)"
LESS = {
    "torch": (
        "use torch.autocast, which halves activation memory",
        "use activation checkpointing (model.gradient_checkpointing_enable() in transformers), which recomputes "
        "activations instead of storing them",
    ),
    "trainer": (
        "TrainingArguments(bf16=True), which halves activation memory",
        "TrainingArguments(gradient_checkpointing=True), which recomputes activations instead of storing them",
    ),
    "keras": ('keras.mixed_precision.set_global_policy("mixed_float16"), which halves activation memory',),
}
LESS_DATA = (
    "do not hold the whole dataset in one array: read each file in __getitem__, or use "
    "np.load(path, mmap_mode='r'), np.memmap or a tf.data pipeline",
    "use a smaller dtype: uint8 for images, float32 instead of float64, and sparse matrices for one-hot columns",
    "print the shape just before: an unintended product of two axes, as broadcasting (n, 1) with (n,) gives, is "
    "larger than planned",
)
ACCUMULATE = {
    "torch": "call optimizer.step() every two batches",
    "trainer": "set TrainingArguments(gradient_accumulation_steps=2), or twice its current value",
    "keras": "create the optimizer with gradient_accumulation_steps=2",
}
SAME = ": the gradient stays the same"

WHILE_WEIGHTS_ARE_PLACED = (
    "run nvidia-smi to see which process holds the memory: a notebook, an earlier run or another user's job",
    "use another GPU: CUDA_VISIBLE_DEVICES=1",
    "if no other process uses the GPU, use a smaller model, or keep its weights in half precision",
)
IN_EVALUATION: dict[str, tuple[str, Fix]] = {
    "gathered": (
        "Memory ran out while the Trainer was concatenating evaluation predictions: the Trainer keeps the "
        "logits of all batches on the GPU until the evaluation ends.",
        (
            "Trainer(preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1)), which keeps one "
            "index per position instead of all logits; use logits[0] if the model returns several outputs",
            "TrainingArguments(eval_accumulation_steps=8), which moves the predictions to host memory every 8 "
            "batches",
            "TrainingArguments(prediction_loss_only=True), if the loss is the only metric you need",
            "with a Seq2SeqTrainer, set predict_with_generate=True",
        ),
    ),
    "trainer": (
        "Memory ran out during evaluation, which has its own batch size.",
        (
            "lower TrainingArguments(per_device_eval_batch_size=...), which defaults to 8",
            "TrainingArguments(bf16_full_eval=True), which halves the memory for weights and activations",
        ),
    ),
    "lightning": (
        "Memory ran out during validation, testing or prediction, whose loader has its own batch size.",
        (
            "use a smaller batch_size in val_dataloader or test_dataloader",
            "call x.detach().cpu() on tensors that validation_step keeps until the end of the epoch",
        ),
    ),
    "own": (
        "It happened in {function}(): unless that runs under torch.no_grad(), every output keeps its graph, with "
        "all activations.",
        (
            "decorate the function with @torch.no_grad(), or put its loop under with torch.no_grad():",
            "use a smaller batch for it, and call .cpu() on outputs that are kept until its end",
            "before it starts, drop what training left: del loss, output",
        ),
    ),
    "keras": (
        "Memory ran out during evaluation or prediction, which has its own batch size.",
        "pass a smaller batch_size to evaluate() or predict(), or a smaller validation_batch_size to fit()",
    ),
}
"""Explanation and fixes if the training batch was not at fault."""


class OutOfMemory(MessageRule):
    """An allocation failed because memory ran out.

    ## What it does
    Recognises four signs: PyTorch's message about a GPU, a failed allocation on the host, a message from
    TensorFlow's allocator, and a process killed by the operating system. Reports the size of the request and the
    free memory. If the exception itself is available, the rule also adds up the memory that the model needs at any
    batch size: weights, gradients, and the optimizer's state. `diagnostics.largest_batch` searches for the largest
    batch that fits, and tries each size in its own process.

    ## Why it is bad
    The model needs a fixed amount of memory. A batch also needs memory for its activations. This memory grows in
    proportion to the number of rows, and at least in proportion to their length. A smaller batch helps, unless the
    model alone is too large.

    ## Example
    ```python
    for batch in DataLoader(dataset, batch_size=256):
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    ```

    ## Instead
    ```python
    for number, batch in enumerate(DataLoader(dataset, batch_size=64), start=1):
        # the mean over four batches is the mean over their rows
        loss = model(**batch).loss / 4
        loss.backward()                     # gradients accumulate
        if number % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## Thresholds
    The model itself is the cause if weights, gradients and optimizer state need at least 90% of the memory. Adam
    and its variants store two numbers per weight; SGD with momentum stores one.

    ## Known problems
    The sum does not include the workspaces of cuDNN and cuBLAS or, in half-precision training, a second copy of
    the weights. Signal 9 does not always mean that memory ran out; the system log shows the reason.

    ## Sources
    PyTorch's notes on "CUDA semantics" ("Memory management"); Samyam Rajbhandari et al., "ZeRO: Memory
    Optimizations Toward Training Trillion Parameter Models" (2020), section 3; the Hugging Face guide "Model
    training anatomy" ("Anatomy of Model's Memory"); TensorFlow's guide "Use a GPU" ("Limiting GPU memory growth").
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: OutOfMemoryCrash) -> Finding | None:
        """Report the request, the free memory, the memory of the model, and what to reduce."""
        if symptom.killed:
            return self._killed(crash, symptom)
        need = symptom.need
        simulated = (
            "This GPU is simulated: the error message is PyTorch's, but there is no GPU."
            if "simulated" in crash.message
            else ""
        )
        sentences = [
            simulated,
            _requested(symptom),
            _room(symptom),
            _fragments(symptom),
            _needed(need),
            _added(symptom),
        ]
        fix = _unless_a_batch_helps(symptom)
        if fix is None and symptom.on_gpu and _places_weights(crash):
            sentences.append(_before_any_batch(symptom))
            fix = WHILE_WEIGHTS_ARE_PLACED
        whose = _evaluation(crash) if symptom.on_gpu else None
        said, advised = IN_EVALUATION.get(whose or "", ("", _less(symptom, crash)))
        if fix is None:
            sentences.append(said.format(function=_own_evaluation(crash)))
        return self.found(
            " ".join(sentence for sentence in sentences if sentence),
            fix=fix or advised,
            evidence=_evidence(symptom),
            where=crash.where,
        )

    def _killed(self, crash: CrashFacts, symptom: OutOfMemoryCrash) -> Finding:
        if symptom.while_loading:
            return self._killed_while_loading(crash, symptom)
        who = "A data loader worker" if symptom.worker else "The process"
        return self.found(
            f"{who} was killed by signal 9 (SIGKILL), so it could not raise an exception. Unless someone sent the "
            "signal manually, it came from the operating system or the container, nearly always because host "
            "memory (not GPU memory) ran out. A job scheduler also sends this signal to a job that exceeds its "
            "memory limit.",
            fix=(
                "confirm the cause: `dmesg | grep -i kill`",
                "use fewer workers (num_workers): each worker holds a copy of the dataset in memory",
                "read the data from disk row by row",
                "use a smaller batch",
            ),
            evidence=_evidence(symptom),
            where=crash.where,
        )

    def _killed_while_loading(self, crash: CrashFacts, symptom: OutOfMemoryCrash) -> Finding:
        return self.found(
            "The process was killed by signal 9 (SIGKILL) while it was loading the checkpoint: nearly always, "
            "this means that host memory (not GPU memory) ran out. Each process of a launcher loads its own copy "
            "of the model into host memory, and may hold a checkpoint shard on top of it. The launcher stops the "
            "other processes with SIGTERM only because this one ended.",
            fix=(
                "confirm the cause: `dmesg | grep -i kill`",
                "start fewer processes per machine, or use a machine (or memory limit) with more host memory",
                "from_pretrained(..., low_cpu_mem_usage=True, torch_dtype=torch.bfloat16), which loads shard by "
                "shard in half precision; with DeepSpeed ZeRO-3 or FSDP, load sharded",
            ),
            evidence=_evidence(symptom),
            where=crash.where,
        )

    def explains(self, cause: Finding, finding: Finding) -> bool | None:
        """Memory that ran out follows from growth of the same memory, by at least the size of the request.

        If it is known which objects are kept, the growth is not measured: then it continues until memory is full.
        """
        grew, tried = cause.evidence.get("grew_bytes"), finding.evidence.get("tried_bytes")
        if cause.rule != "growing-memory" or not isinstance(grew, int | float):
            return None
        same = (cause.evidence.get("memory_of") == "process") == (finding.evidence.get("device") == "CPU")
        return same and (not isinstance(tried, int | float) or grew >= tried)


def _requested(symptom: OutOfMemoryCrash) -> str:
    device = "The host" if symptom.device == "CPU" else symptom.device
    device = "The GPU" if symptom.device == "GPU" else device
    if symptom.tried is None:
        return f"{device} ran out of memory."
    tensor = ""
    if symptom.shape is not None:
        of = f" and type {symptom.dtype}" if symptom.dtype else ""
        tensor = f" for a tensor of shape {symptom.shape}{of}"
    return f"{device} ran out of memory while allocating {in_bytes(symptom.tried)}{tensor}."


def _room(symptom: OutOfMemoryCrash) -> str:
    capacity, free = symptom.capacity, symptom.free
    others = ""
    # If the message does not give this process's own share, the driver's memory counts as that of others.
    share = 0.5 if symptom.others is None else 0.1
    if symptom.elsewhere and symptom.card and symptom.elsewhere > share * symptom.card:
        held = listed(symptom.others) if symptom.others else in_bytes(symptom.elsewhere)
        others = f" Other processes hold part of the GPU's memory: {held}."
    if capacity is None:
        return others.strip()
    if free is None:
        return f"This process can use {in_bytes(capacity)}.{others}"
    return f"{in_bytes(free)} of {in_bytes(capacity)} was free.{others}"


def _fragments(symptom: OutOfMemoryCrash) -> str:
    if _was_refused(symptom):
        return "That is far more than the request, so memory did not run out: the allocation was refused."
    unused = _unused(symptom)
    if unused is None or symptom.tried is None or not _is_fragmented(symptom):
        return ""
    if symptom.free is not None and symptom.free >= max(unused, symptom.tried) and symptom.framework != "PyTorch":
        return (
            f"That would be enough, but {symptom.framework}'s memory is fragmented into blocks that are too small."
        )
    if symptom.free is not None and symptom.free >= max(unused, symptom.tried):
        return (
            "That would be enough. Possible causes: PyTorch's memory is fragmented into blocks that are too "
            "small, a limit keeps this process from using the free memory, or the memory was freed only after "
            "the failure."
        )
    return (
        f"{symptom.framework} itself has reserved {in_bytes(unused)} that no tensor uses. That would be enough, "
        "but it is fragmented into blocks that are too small."
    )


def _was_refused(symptom: OutOfMemoryCrash) -> bool:
    """Return whether so much was free that fragmentation cannot explain the failure."""
    return symptom.free is not None and symptom.tried is not None and symptom.free >= REFUSED * symptom.tried


def _is_fragmented(symptom: OutOfMemoryCrash) -> bool:
    """Return whether the framework itself holds enough unused memory, and more than it always does."""
    unused = _unused(symptom)
    if unused is None or symptom.tried is None or unused < symptom.tried:
        return False
    return symptom.framework != "PyTorch" or unused >= FRAGMENTED * (symptom.reserved or 0)


def _unused(symptom: OutOfMemoryCrash) -> int | None:
    if symptom.reserved is None or symptom.allocated is None:
        return None
    return symptom.reserved - symptom.allocated


def _needed(need: ModelMemory | None) -> str:
    if need is None:
        return ""
    parts = [f"{in_bytes(need.weights)} for weights", f"{in_bytes(need.gradients)} for gradients"]
    if need.optimizer_state and need.optimizer in _TWO_MOMENTS:
        parts.append(f"{in_bytes(need.optimizer_state)} for {need.optimizer}'s two moments")
    elif need.optimizer_state:
        parts.append(f"{in_bytes(need.optimizer_state)} for {need.optimizer}'s state")
    return f"Training {need.model} needs {in_bytes(need.total)} whatever the batch size: {join.listed(parts)}."


def _added(symptom: OutOfMemoryCrash) -> str:
    need = symptom.need
    if need is None or need.batch_rows is None:
        return ""
    rows = join.count_of(need.batch_rows, "row")
    if symptom.allocated is not None and need.present is not None and symptom.allocated > need.present:
        added = in_bytes(symptom.allocated - need.present)
        return (
            f"The batch of {rows} had added {added} by then; activations grow in proportion to the number of rows."
        )
    return f"Activations need extra memory, in proportion to the number of rows: this batch has {rows}."


def _way_of_training(crash: CrashFacts, symptom: OutOfMemoryCrash) -> str:
    if any(frame.file.replace("\\", "/").startswith("transformers/trainer") for frame in crash.frames):
        return "trainer"
    return (
        "keras" if symptom.framework == "TensorFlow" else "torch" if symptom.need is None else symptom.need.library
    )


_JOINS = (
    "nested_concat", "torch_pad_and_concatenate", "pad_across_processes", "gather_for_metrics", "gather_function",
)  # fmt: skip


def _evaluation(crash: CrashFacts) -> str | None:
    """Name the evaluation in the frames, and whether it was joining predictions; None if there is none."""
    for frame in crash.frames:
        file = frame.file.replace("\\", "/")
        if file.startswith("transformers/trainer") and frame.function in ("evaluation_loop", "prediction_loop"):
            return "gathered" if any(called.function in _JOINS for called in crash.frames) else "trainer"
        if file.endswith(("loops/evaluation_loop.py", "loops/prediction_loop.py")):
            return "lightning"
        if file.startswith("transformers/trainer") and frame.function in _JOINS:
            return "gathered"  # the frames before it were not copied
        if re.match(r"(?:tf_)?keras/|tensorflow/python/keras/", file) and frame.function in (
            "evaluate",
            "predict",
        ):
            return "keras"
    return None if _own_evaluation(crash) is None else "own"


_EVALUATES = re.compile(
    r"_?(?:do_|run_)?(?:validate|validation|evaluate|evaluation|eval|test|predict|inference|infer)"
    r"(?:_(?:epoch|one_epoch|loop|model|step|fn|network|net))?"
)
_TRAINS = re.compile(r"train|fit|backward", re.IGNORECASE)


def _own_evaluation(crash: CrashFacts) -> str | None:
    """Return the user's function that evaluates, by its name; None if none does, or if it has no_grad already."""
    if crash.in_keras or any("no_grad" in (frame.code or "") for frame in crash.frames):
        return None
    found = None
    for frame in crash.frames:
        name = frame.function.rpartition(".")[2]
        if frame.yours and _EVALUATES.fullmatch(name):
            found = name
        elif _TRAINS.search(name):  # an evaluation of a whole training, as a search for settings makes it
            found = None
    return found


def _places_weights(crash: CrashFacts) -> bool:
    """Return whether memory ran out in `Module.to`, or in TensorFlow's initializer of a variable."""
    if re.search(r"/Initializer/", crash.message):
        return True
    return any(
        frame.function in ("_apply", "cuda")
        and frame.file.replace("\\", "/").endswith("torch/nn/modules/module.py")
        for frame in crash.frames
    )


def _before_any_batch(symptom: OutOfMemoryCrash) -> str:
    said = (
        "This happened before the first batch, while weights were being moved to the GPU, so a smaller batch "
        "will not help."
    )
    if symptom.tried is None or symptom.card is None or symptom.tried > symptom.card / 2:
        return said
    return (
        f"{said} The request is only {symptom.tried / symptom.card:.0%} of the card's {in_bytes(symptom.card)}, "
        "so other processes or tensors created earlier must be using the rest."
    )


def _unless_a_batch_helps(symptom: OutOfMemoryCrash) -> Fix | None:
    """Return the fix if a smaller batch is not the first thing to try; None if it is."""
    need = symptom.need
    if symptom.elsewhere and symptom.card and symptom.elsewhere > 0.5 * symptom.card:
        return "free GPU memory first: other processes hold most of it, and `diagnose gpu` lists them"
    if _was_refused(symptom):
        return (
            "watch nvidia-smi while the run starts: another process may take the memory for a moment",
            "look for a limit: set_per_process_memory_fraction, a MIG slice, the pagefile on Windows",
            "restart the process, then the driver if that does not help",
        )
    if need is not None and symptom.capacity is not None and need.total > NO_BATCH_HELPS * symptom.capacity:
        fewer = "train fewer weights (freeze the rest, or use LoRA)"
        if need.gradients < MOSTLY_FROZEN * need.weights:
            fewer = "load the frozen weights in 4 bits (in transformers: BitsAndBytesConfig(load_in_4bit=True))"
        return (
            f"{fewer}, since no batch size is small enough",
            "store the weights in half precision",
            "use an optimizer with less state",
            "use a smaller model or a larger GPU",
        )
    if _is_fragmented(symptom):
        return (
            "set TF_GPU_ALLOCATOR=cuda_malloc_async in the environment: CUDA's own allocator avoids fragmentation"
            if symptom.framework == "TensorFlow"
            else "to avoid the fragmentation, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before torch "
            "is imported",
            "use a smaller batch",
        )
    return None


def _less(symptom: OutOfMemoryCrash, crash: CrashFacts) -> Fix:
    """Return the ways to make a training batch, or the array that did not fit, need less memory."""
    if symptom.framework == "NumPy":
        return LESS_DATA
    need, way = symptom.need, _way_of_training(crash, symptom)
    if need is not None and need.batch_rows == 1:
        return ("use shorter sequences (a smaller max_length)", *LESS[way])
    if need is not None and need.batch_rows is not None:
        half = need.batch_rows // 2
        change = f"use batches of {half} rows instead of {need.batch_rows}, and {ACCUMULATE[way]}{SAME}"
    else:
        change = f"halve the batch size, and {ACCUMULATE[way]}{SAME}"
    if not crash.live and not crash.frames and way == "torch":
        return (change, MAYBE_EVALUATION, SEARCH, *LESS[way])
    return (change, SEARCH, *LESS[way])


def _evidence(symptom: OutOfMemoryCrash) -> dict[str, object]:
    need = symptom.need
    return {
        "framework": symptom.framework,
        "device": symptom.device,
        "tried_bytes": symptom.tried,
        "capacity_bytes": symptom.capacity,
        "free_bytes": symptom.free,
        "allocated_bytes": symptom.allocated,
        "reserved_bytes": symptom.reserved,
        "killed": symptom.killed,
        "weights_bytes": need and need.weights,
        "gradients_bytes": need and need.gradients,
        "optimizer_state_bytes": need and need.optimizer_state,
        "batch_rows": need and need.batch_rows,
    }
