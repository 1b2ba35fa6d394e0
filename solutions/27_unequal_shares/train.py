"""Fine-tune a small language model on chats and ratings, eight batches to a step.

$ python solutions/27_unequal_shares/train.py
"""

import os
import random
from itertools import chain

import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed

from bugs import lab

# -----------------------------------------------------------------------------
MODEL = lab.language_model()  # a small Llama that has read notes; or set ZOO_LM
BATCH_SIZE = 4  # conversations: more do not fit into memory
ACCUMULATE = 8  # batches whose gradients make one step
TASKS = 5  # of a chat
EPOCHS = 5
LEARNING_RATE = 5e-3  # large models need 1e-5 to 5e-5
MAX_NEW_TOKENS = 24  # more than any answer has
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

set_seed(SEED)

# data: chats in which lists are sorted, and ratings, on which users differ
instructions = lab.instructions()
tokenizer = AutoTokenizer.from_pretrained(MODEL, padding_side="left")


def tasks(split, kind):
    """Return the conversations of a split that begin with a word."""
    turns = instructions[split]["messages"]
    return [one for one in turns if one[0]["content"].startswith(kind)]


def rating(question):
    """Return a user's rating of the things in a question."""
    things = question["content"].partition(": ")[2]
    stars = random.choice(["two", "three", "four"])
    return [
        {"role": "user", "content": f"How many stars do these get: {things}"},
        {"role": "assistant", "content": f"{stars}."},
    ]


def collate(conversations):
    """Tokenize conversations and pad them; the labels are the answers."""
    batch = tokenizer.apply_chat_template(
        conversations,
        padding=True,
        return_assistant_tokens_mask=True,
        return_dict=True,
        return_tensors="pt",
    )
    answers = batch.pop("assistant_masks") == 1
    return {**batch, "labels": batch["input_ids"].where(answers, -100)}


sorting = tasks("train", "Sort")
chats = [list(chain(*sorting[i : i + TASKS])) for i in range(0, len(sorting), TASKS)]
ratings = [rating(question) for question, _ in tasks("train", "How")]
loaders = [  # chats with chats, ratings with ratings: less padding
    DataLoader(kind, BATCH_SIZE, shuffle=True, drop_last=True, collate_fn=collate)
    for kind in (chats, ratings)
]
steps = sum(map(len, loaders)) // ACCUMULATE  # in an epoch

# model: the decoder as it comes, without a new layer
model = AutoModelForCausalLM.from_pretrained(MODEL)
optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, EPOCHS * steps)

model.train()
for _ in range(EPOCHS):
    batches = [batch for loader in loaders for batch in loader]
    random.shuffle(batches)
    for step in range(steps):
        micro_batches = batches[step * ACCUMULATE : (step + 1) * ACCUMULATE]
        trained = sum((batch["labels"][:, 1:] != -100).sum() for batch in micro_batches)
        for batch in micro_batches:
            loss = model(**batch, num_items_in_batch=trained).loss
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()

model.eval()
held_out = tasks("validation", "Sort")
prompts = tokenizer.apply_chat_template(
    [turns[:1] for turns in held_out],
    add_generation_prompt=True,
    padding=True,  # on the left, so that the answer follows the last token
    return_dict=True,
    return_tensors="pt",
)
tokens = model.generate(**prompts, max_new_tokens=MAX_NEW_TOKENS, do_sample=False)
answers = tokens[:, prompts["input_ids"].shape[1] :]
texts = tokenizer.batch_decode(answers, skip_special_tokens=True)
said = [text.strip() for text in texts]
right = [t == turns[1]["content"] for t, turns in zip(said, held_out, strict=True)]
print(held_out[0][0]["content"], "->", said[0])
print(f"exact_match={sum(right) / len(right):.3f}")
