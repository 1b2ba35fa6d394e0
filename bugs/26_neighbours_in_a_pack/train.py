"""Fine-tune a small language model on tasks in two wordings, both in one row.

$ python bugs/26_neighbours_in_a_pack/train.py
"""

import os
import tempfile

from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Trainer,
    TrainingArguments,
    set_seed,
)

from bugs import lab

# -----------------------------------------------------------------------------
MODEL = lab.language_model()  # a small Llama that has read notes; or set ZOO_LM
ROW = 64  # tokens: room for two conversations, one after the other
BATCH_SIZE = 32
EPOCHS = 4
LEARNING_RATE = 5e-3  # large models need 1e-5 to 5e-5
MAX_NEW_TOKENS = 24  # more than any answer has
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

set_seed(SEED)

# data: tasks and answers. Users word a task the other way round, so each is there twice
instructions = lab.instructions()
tokenizer = AutoTokenizer.from_pretrained(MODEL, padding_side="left")


def reworded(task):
    """Word a task as users do: "pears, drums: sort by the alphabet"."""
    first, second = task.split(". " if task.endswith("?") else ": ")
    return f"{second} {first}." if task.endswith("?") else f"{second}: {first.lower()}"


def pack(row):
    """Put a task in both wordings into one row; the positions restart with each."""
    packed = {"input_ids": [], "labels": [], "position_ids": [], "attention_mask": []}
    task, answer = row["messages"]
    for words in (task["content"], reworded(task["content"])):
        part = tokenizer.apply_chat_template(
            [{"role": "user", "content": words}, answer],
            return_assistant_tokens_mask=True,
        )
        pairs = zip(part["input_ids"], part["assistant_masks"], strict=True)
        packed["input_ids"] += part["input_ids"]
        packed["labels"] += [token if answers else -100 for token, answers in pairs]
        packed["position_ids"] += range(len(part["input_ids"]))
        packed["attention_mask"] += part["attention_mask"]
    fill = {"input_ids": tokenizer.pad_token_id, "labels": -100}
    rest = ROW - len(packed["input_ids"])
    return {name: part + [fill.get(name, 0)] * rest for name, part in packed.items()}


train = instructions["train"].map(pack, remove_columns="messages")

# model: the decoder as it comes, without a new layer
model = AutoModelForCausalLM.from_pretrained(MODEL)

output = tempfile.TemporaryDirectory()  # the Trainer wants one, though nothing is saved

trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=output.name,
        learning_rate=LEARNING_RATE,
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH_SIZE,
        logging_steps=25,
        save_strategy="no",
        report_to="none",
        dataloader_pin_memory=False,  # it serves GPUs, and warns where there is none
        seed=SEED,
    ),
    train_dataset=train,
)


def serve(tasks):
    """Return what the model says to each task."""
    prompts = tokenizer.apply_chat_template(
        [[{"role": "user", "content": task}] for task in tasks],
        add_generation_prompt=True,
        padding=True,  # on the left, so that the answer follows the last token
        return_tensors="pt",
    )
    tokens = model.generate(**prompts, max_new_tokens=MAX_NEW_TOKENS, do_sample=False)
    said = tokens[:, prompts["input_ids"].shape[1] :]
    return [t.strip() for t in tokenizer.batch_decode(said, skip_special_tokens=True)]


trainer.train()

held_out = instructions["validation"]["messages"][:96]
tasks = [reworded(turns[0]["content"]) for turns in held_out]
said = serve(tasks)
right = [t == turns[1]["content"] for t, turns in zip(said, held_out, strict=True)]
print(tasks[0], "->", said[0])
print(f"exact_match={sum(right) / len(right):.3f}")
