"""See `UnusableSetting`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash import setup as facts
from diagnostics.text.join import listed

MAX_NAMED = 8  # metrics in the message; the evidence holds them all


class UnusableSetting(MessageRule):
    """A setting names a layer, metric or port that does not exist, or contradicts another setting.

    ## What it does
    Recognises error messages from PEFT, Lightning, transformers, DeepSpeed, Keras and PyTorch's rendezvous about
    settings that they cannot use, and lists the alternatives that the message names.

    ## Why it is bad
    Such settings are strings and numbers that are checked only at run time: a layer name from another
    architecture, a metric that is logged under another name, or a port that a previous run still occupies.

    ## Example
    ```python
    # the model calls them "query_key_value"
    LoraConfig(target_modules=["q_proj", "v_proj"])
    ```

    ## Instead
    ```python
    linear = [name for name, m in model.named_modules() if isinstance(m, nn.Linear)]
    print({name.rpartition(".")[2] for name in linear})
    LoraConfig(target_modules=["query_key_value"])
    ```

    ## Thresholds
    None: the rule fires only after the library has raised its error.

    ## Known problems
    The layers or metrics that do exist are known only if the message lists them.

    ## Sources
    The documentation for `peft.LoraConfig`, Lightning's `ModelCheckpoint`, transformers' `TrainingArguments`,
    Keras' `Model.fit`, and torchrun; transformers, "DeepSpeed integration".
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: facts.UnusableSetting) -> Finding | None:
        """Report which setting cannot be used, and possible replacements."""
        message, fix = _seen(symptom)
        return self.found(
            message,
            fix=fix,
            evidence={"kind": symptom.kind, "what": symptom.what, "offered": list(symptom.offered)},
            where=crash.where,
        )


def _seen(symptom: facts.UnusableSetting) -> tuple[str, Fix]:
    what = symptom.what
    match symptom.kind:
        case "target modules":
            empty = what is not None and not what.strip("[]{}()set ")
            named = (
                "The list of target_modules is empty"
                if empty or what is None
                else f"target_modules={what} matches no layer of this model"
            )
            return (
                f"{named}, so there is nothing to attach adapters to. Layer names differ across architectures; "
                "quantised layers have their own classes, and a model that already has adapters has a different "
                "structure.",
                (
                    "print([name for name, module in model.named_modules()]), then use the last part of "
                    "each linear layer's name",
                    'set target_modules="all-linear", in recent versions of PEFT',
                ),
            )
        case "monitor":
            offered = (
                f" The logged metrics are: {listed(symptom.offered, most=MAX_NAMED)}." if symptom.offered else ""
            )
            unlogged = (
                f"{what} is monitored, but no metric with that name has been logged."
                if what
                else "The monitored metric has not been logged."
            )
            return (
                f"{unlogged}{offered}",
                (
                    "monitor one of the logged names, spelled exactly as logged"
                    if symptom.offered
                    else "monitor the name of a logged metric",
                    f"call self.log({what or 'NAME'!r}, value) in validation_step",
                    f"return {{{what or 'NAME'!r}: value}} from compute_metrics",
                    "check that validation runs before the first checkpoint is written",
                ),
            )
        case "config":
            return (
                f"DeepSpeed's configuration and the training arguments disagree{f': {what}' if what else ''}.",
                (
                    'set the conflicting values to "auto" in the DeepSpeed configuration',
                    "pass the same values as arguments, and check that the arguments reach the script: a shell "
                    "command ends at the first line without a backslash",
                ),
            )
        case "strategies":
            return (
                "load_best_model_at_end needs an evaluation at every save, but evaluations and saves are "
                "scheduled at different steps.",
                'set eval_strategy="steps" and save_strategy="steps", and make save_steps a multiple of '
                "eval_steps",
            )
        case "address":
            return (
                f"{f'Port {what}' if what else 'The rendezvous port'} is in use by another process: "
                "another run on this machine, or an earlier run that is still alive.",
                (
                    "use a different port: torchrun --master-port 29501 ..., accelerate launch "
                    "--main_process_port 29501 ..., or MASTER_PORT=29501",
                    "let torchrun choose a free port: torchrun --standalone ...",
                    f"find the process that uses the port: lsof -i :{what or 29500}",
                ),
            )
        case "steps":
            given = f"{int(what):,} batches, but the data ran out earlier" if what else "more data than there is"
            return (
                f"steps_per_epoch and epochs request {given}.",
                (
                    "leave out steps_per_epoch for finite data",
                    "repeat the data: dataset.repeat() for a tf.data.Dataset, or while True: in a generator",
                    "steps_per_epoch = len(x) // batch_size",
                ),
            )
