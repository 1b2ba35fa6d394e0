"""Fine-tune a small language model on instructions, in a loop of our own.

$ python bugs/24_next_but_one/train.py
"""

import os

import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed

from bugs import lab

# -----------------------------------------------------------------------------
MODEL = lab.language_model()  # a small Llama that has read notes; or set ZOO_LM
BATCH_SIZE = 32
EPOCHS = 4
LEARNING_RATE = 5e-3  # large models need 1e-5 to 5e-5
MAX_NEW_TOKENS = 24  # more than any answer has
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

set_seed(SEED)

# data: a task and its answer, written as the chat template has it
instructions = lab.instructions()
tokenizer = AutoTokenizer.from_pretrained(MODEL)


def collate(rows):
    """Tokenize conversations and pad them; the model predicts each next token."""
    batch = tokenizer.apply_chat_template(
        [row["messages"] for row in rows],
        padding=True,
        return_dict=True,
        return_tensors="pt",
    )
    tokens, mask = batch["input_ids"], batch["attention_mask"]
    labels = tokens.masked_fill(mask == 0, -100)
    return {
        "input_ids": tokens[:, :-1],
        "attention_mask": mask[:, :-1],
        "labels": labels[:, 1:],
    }


train = DataLoader(
    instructions["train"], batch_size=BATCH_SIZE, shuffle=True, collate_fn=collate
)

# model: the decoder as it comes, without a new layer
model = AutoModelForCausalLM.from_pretrained(MODEL)

optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
schedule = torch.optim.lr_scheduler.LinearLR(
    optimizer, 1.0, 0.0, total_iters=EPOCHS * len(train)
)


def generate(conversations):
    """What the model says to each task, as tokens (rows, up to MAX_NEW_TOKENS)."""
    asked = [turns[:1] for turns in conversations]
    texts = tokenizer.apply_chat_template(
        asked, add_generation_prompt=True, tokenize=False
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
    return tokens[:, prompts["input_ids"].shape[1] :]


model.train()
for epoch in range(EPOCHS):
    for step, batch in enumerate(train):
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 25 == 0:
            print(f"epoch {epoch}, step {step}: loss {loss.item():.3f}")

model.eval()

conversations = instructions["validation"]["messages"][:96]
said = tokenizer.batch_decode(generate(conversations), skip_special_tokens=True)
right = [
    text.strip() == turns[1]["content"]
    for text, turns in zip(said, conversations, strict=True)
]
print(conversations[0][0]["content"], "->", said[0].strip())
print(f"exact_match={sum(right) / len(right):.3f}")
