"""Fine-tune a small language model on tasks in two wordings, both in one row.

$ python solutions/26_neighbours_in_a_pack/train.py
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
ROW = 64  # tokens: two conversations, one after the other
BATCH_SIZE = 32
EPOCHS = 4
LEARNING_RATE = 5e-3  # large models need 1e-5 to 5e-5
MAX_NEW_TOKENS = 24  # more than any answer has
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

set_seed(SEED)

# data: tasks and answers. Users word a task the other way round, so each is there twice
instructions = lab.instructions()
tokenizer = AutoTokenizer.from_pretrained(MODEL)


def reworded(task):
    """Word a task as users do: "pears, drums: sort by the alphabet"."""
    if task.endswith("?"):
        table, question = task.split(". ")
        return f"{question} {table}."
    asked, things = task.split(": ")
    return f"{things}: {asked[0].lower()}{asked[1:]}"


def tokenize(task, answer):
    """Tokenize a conversation; only the answer counts in the loss."""
    turns = [
        {"role": "user", "content": task},
        {"role": "assistant", "content": answer},
    ]
    row = tokenizer.apply_chat_template(
        turns, return_dict=True, return_assistant_tokens_mask=True
    )
    tokens, answers = row["input_ids"], row["assistant_masks"]
    return tokens, [t if a else -100 for t, a in zip(tokens, answers, strict=True)]


def pack(conversations):
    """Join conversations in one row; the positions restart with each."""
    row = {"input_ids": [], "labels": [], "position_ids": []}
    for tokens, labels in conversations:
        row["input_ids"] += tokens
        row["labels"] += labels
        row["position_ids"] += range(len(tokens))
    fill = {"input_ids": tokenizer.pad_token_id, "labels": -100}
    short = ROW - len(row["input_ids"])
    return {name: part + [fill.get(name, 0)] * short for name, part in row.items()}


def both(row):
    """Return one row with a task in both wordings."""
    task, answer = (turn["content"] for turn in row["messages"])
    return pack([tokenize(task, answer), tokenize(reworded(task), answer)])


train = instructions["train"].map(both, remove_columns="messages")

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


def serve(asked):
    """Return what the model says to each task alone."""
    texts = tokenizer.apply_chat_template(
        [[{"role": "user", "content": task}] for task in asked],
        add_generation_prompt=True,
        tokenize=False,
    )
    # padding is on the left, so that the answer follows the last token
    prompts = tokenizer(
        texts,
        add_special_tokens=False,
        padding=True,
        padding_side="left",
        return_tensors="pt",
    )
    tokens = model.generate(**prompts, max_new_tokens=MAX_NEW_TOKENS, do_sample=False)
    said = tokens[:, prompts["input_ids"].shape[1] :]
    return [t.strip() for t in tokenizer.batch_decode(said, skip_special_tokens=True)]


trainer.train()

turns = instructions["validation"]["messages"][:96]
tasks = [reworded(task["content"]) for task, _ in turns]  # as users word them
wanted = [answer["content"] for _, answer in turns]
said = serve(tasks)
right = [one == other for one, other in zip(said, wanted, strict=True)]
print(tasks[0], "->", said[0])
print(f"exact_match={sum(right) / len(right):.3f}")
