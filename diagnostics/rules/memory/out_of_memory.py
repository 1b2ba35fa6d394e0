"""See `OutOfMemory`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.crash import CrashFacts, ModelMemory, OutOfMemoryCrash
from diagnostics.facts.gpu import in_bytes, listed

NO_BATCH_HELPS = 0.9  # of the memory: what a model takes by itself beyond that leaves no room for a useful batch
_TWO_MOMENTS = ("Adam", "AdamW", "NAdam", "Nadam", "RAdam")

SEARCH = "diagnostics.largest_batch(step) searches for the largest that fits"
LESS = {
    "torch": (
        "torch.autocast for half-sized activations; activation checkpointing "
        "(model.gradient_checkpointing_enable() in transformers), which computes them again instead of keeping "
        "them"
    ),
    "trainer": (
        "TrainingArguments(bf16=True) for half-sized activations; gradient_checkpointing=True, which computes "
        "them again instead of keeping them"
    ),
    "keras": 'keras.mixed_precision.set_global_policy("mixed_float16") for half-sized activations',
}
ACCUMULATE = {
    "torch": "step the optimizer once in two batches",
    "trainer": "TrainingArguments(gradient_accumulation_steps=2), or twice what it is now",
    "keras": "build the optimizer with gradient_accumulation_steps=2",
}


class OutOfMemory(Rule):
    """Memory was asked for that was not to be had.

    ## What it does
    Recognises the four forms: PyTorch's sentence about a card, an allocation refused on the host, TensorFlow's
    allocator, and a process that the operating system ended. Says what was asked for and what there was. From a
    live exception it adds up what the model takes before any batch: weights, one gradient for each trainable
    weight, and the optimizer's state. `diagnostics.largest_batch` searches for the largest batch that fits, each
    trial in a process of its own.

    ## Why it is bad
    The run ends. What the model takes by itself is fixed; what a batch adds, the activations that the backward
    pass needs, grows in proportion with its rows, and with the length of its rows or faster. So the batch is what
    can give way, unless the model alone is too large.

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
        loss = model(**batch).loss / 4      # the mean over four batches is the mean over their rows
        loss.backward()                     # gradients add up
        if number % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## Thresholds
    The model itself counts as the cause if weights, gradients and optimizer state take 90% of the memory: what is
    left then is too little for a useful batch. Adam and its kin keep two numbers a weight, SGD with momentum one.

    ## Known problems
    Half-precision training that keeps a second copy of the weights, and the workspaces of cuDNN and cuBLAS, are
    not in the sum. Of a model that is spread over several cards the sum is that of all of them. A process that
    was ended by signal 9 was not necessarily ended for its memory; the system's log tells.

    ## Sources
    PyTorch's notes on "CUDA semantics" ("Memory management"); Samyam Rajbhandari and others, "ZeRO: Memory
    Optimizations Toward Training Trillion Parameter Models" (2020), section 3; the Hugging Face guide "Model
    training anatomy" ("Anatomy of Model's Memory"); TensorFlow's guide "Use a GPU" ("Limiting GPU memory growth").
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: OutOfMemoryCrash) -> Finding | None:
        """Say what was asked for and what there was, what the model takes, and what can give way."""
        if symptom.killed:
            return self._killed(crash, symptom)
        if symptom.device == "shared memory":
            return self._shared_memory(crash)
        need = symptom.need
        simulated = "A simulated card: PyTorch's words, no card." if "simulated" in crash.message else ""
        sentences = [
            simulated,
            _asked(symptom),
            _room(symptom),
            _fragments(symptom),
            _needed(need),
            _added(symptom),
        ]
        return self.found(
            " ".join(sentence for sentence in sentences if sentence),
            fix=_fix(symptom, _way_of_training(crash, symptom)),
            evidence=_evidence(symptom),
            where=crash.where,
        )

    def _killed(self, crash: CrashFacts, symptom: OutOfMemoryCrash) -> Finding:
        who = "A worker of the data loader" if symptom.worker else "The process"
        return self.found(
            f"{who} was ended from outside by signal 9 (SIGKILL), which leaves no time for an exception. When "
            "nobody sent it by hand, it was the operating system or the container, and nearly always because the "
            "memory of the host, not of a card, had run out. A job scheduler does the same at its own limit.",
            fix=(
                "make sure with `dmesg | grep -i kill`; then fewer workers (num_workers), each of which holds a "
                "copy of what the dataset keeps in memory, data read from disk row by row, or a smaller batch"
            ),
            evidence=_evidence(symptom),
            where=crash.where,
        )

    def _shared_memory(self, crash: CrashFacts) -> Finding:
        return self.found(
            "A worker of the data loader ran out of shared memory: workers hand their batches over through "
            "/dev/shm, and that is full. Containers give it 64 MiB unless told otherwise.",
            fix="start the container with --shm-size=8g (or --ipc=host), or load with fewer workers, or none",
            evidence={"device": "shared memory"},
            where=crash.where,
        )


def _asked(symptom: OutOfMemoryCrash) -> str:
    device = "The host's memory" if symptom.device == "CPU" else f"The memory of {symptom.device}"
    device = "The GPU's memory" if symptom.device == "GPU" else device
    if symptom.tried is None:
        return f"{device} ran out."
    tensor = ""
    if symptom.shape is not None:
        of = f" of {symptom.dtype}" if symptom.dtype else ""
        tensor = f", for a tensor of shape {symptom.shape}{of}"
    return f"{device} ran out: {in_bytes(symptom.tried)} more was asked for{tensor}."


def _room(symptom: OutOfMemoryCrash) -> str:
    capacity, free = symptom.capacity, symptom.free
    others = ""
    # Where the message does not say what is this process's own, the driver's share counts as others'.
    share = 0.5 if symptom.others is None else 0.1
    if symptom.elsewhere and symptom.card and symptom.elsewhere > share * symptom.card:
        held = listed(symptom.others) if symptom.others else in_bytes(symptom.elsewhere)
        others = f" Other processes hold part of it: {held}."
    if capacity is None:
        return others.strip()
    if free is None:
        return f"There is {in_bytes(capacity)} for this process.{others}"
    return f"Of {in_bytes(capacity)} there was {in_bytes(free)} free.{others}"


def _fragments(symptom: OutOfMemoryCrash) -> str:
    unused = _unused(symptom)
    if unused is None or symptom.tried is None or unused < symptom.tried:
        return ""
    if symptom.free is not None and symptom.free >= max(unused, symptom.tried):
        return f"That would be enough, but {symptom.framework} holds it in pieces that are each too small."
    return (
        f"{symptom.framework} itself holds {in_bytes(unused)} that no tensor uses, which would be enough, but in "
        "pieces that are each too small."
    )


def _unused(symptom: OutOfMemoryCrash) -> int | None:
    if symptom.reserved is None or symptom.allocated is None:
        return None
    return symptom.reserved - symptom.allocated


def _needed(need: ModelMemory | None) -> str:
    if need is None:
        return ""
    parts = [f"{in_bytes(need.weights)} of weights", f"{in_bytes(need.gradients)} of gradients"]
    if need.optimizer_state and need.optimizer in _TWO_MOMENTS:
        parts.append(f"{in_bytes(need.optimizer_state)} of {need.optimizer}'s two moments")
    elif need.optimizer_state:
        parts.append(f"{in_bytes(need.optimizer_state)} of {need.optimizer}'s state")
    inner = ", ".join(parts[:-1])
    return f"Training {need.model} takes {in_bytes(need.total)} before any batch: {inner} and {parts[-1]}."


def _added(symptom: OutOfMemoryCrash) -> str:
    need = symptom.need
    if need is None or need.batch_rows is None:
        return ""
    rows = f"{need.batch_rows} {'row' if need.batch_rows == 1 else 'rows'}"
    if need.batch_length is not None:
        rows += f" of {need.batch_length} tokens"
    held = ""
    if symptom.allocated is not None and need.present is not None and symptom.allocated > need.present:
        held = f" had added {in_bytes(symptom.allocated - need.present)} by then, and"
    return f"The batch of {rows}{held} adds activations in proportion with its rows."


def _way_of_training(crash: CrashFacts, symptom: OutOfMemoryCrash) -> str:
    if any(frame.file.replace("\\", "/").startswith("transformers/trainer") for frame in crash.frames):
        return "trainer"
    return (
        "keras" if symptom.framework == "TensorFlow" else "torch" if symptom.need is None else symptom.need.library
    )


def _fix(symptom: OutOfMemoryCrash, way: str) -> str:
    need = symptom.need
    if symptom.elsewhere and symptom.card and symptom.elsewhere > 0.5 * symptom.card:
        return "make room first: most of the card is other processes'. `diagnose gpu` lists them"
    unused = _unused(symptom)
    if need is not None and symptom.capacity is not None and need.total > NO_BATCH_HELPS * symptom.capacity:
        return (
            "no batch is small enough: train fewer of the weights (freeze the rest, or LoRA), hold them in half "
            "precision, use an optimizer with less state, or take a smaller model or a larger card"
        )
    if unused is not None and symptom.tried is not None and unused >= symptom.tried:
        return (
            "set TF_GPU_ALLOCATOR=cuda_malloc_async in the environment, which has CUDA itself manage the pieces; "
            "or a smaller batch"
            if symptom.framework == "TensorFlow"
            else "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before torch is imported, which keeps the "
            "pieces together; or a smaller batch"
        )
    if need is not None and need.batch_rows == 1:
        return f"shorter rows (a smaller max_length), then {LESS[way]}"
    if need is not None and need.batch_rows is not None:
        half = need.batch_rows // 2
        change = f"{half} rows instead of {need.batch_rows}, and {ACCUMULATE[way]}: the same step"
    else:
        change = f"half the batch size, and {ACCUMULATE[way]}: the same step"
    return f"{change}. {SEARCH}. Or {LESS[way]}"


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
        "batch_length": need and need.batch_length,
    }
