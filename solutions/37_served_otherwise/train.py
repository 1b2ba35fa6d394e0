"""Fine-tune a small language model on instructions, and let it answer a list of tasks.

$ python solutions/37_served_otherwise/train.py
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
SERVED = 16  # tasks that are answered together
MAX_NEW_TOKENS = 24  # more than any answer has
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

set_seed(SEED)

# data: a task and its answer, written as the chat template has it
instructions = lab.instructions()
tokenizer = AutoTokenizer.from_pretrained(MODEL)


def collate(rows):
    """Tokenize conversations and pad them; only the answers count in the loss."""
    batch = tokenizer.apply_chat_template(
        [row["messages"] for row in rows],
        padding=True,
        return_dict=True,
        return_tensors="pt",
        return_assistant_tokens_mask=True,
    )
    answers = torch.as_tensor(batch.pop("assistant_masks")) == 1
    batch["labels"] = batch["input_ids"].masked_fill(~answers, -100)
    return batch


train = DataLoader(
    instructions["train"], batch_size=BATCH_SIZE, shuffle=True, collate_fn=collate
)

# model: the decoder as it comes, without a new layer
model = AutoModelForCausalLM.from_pretrained(MODEL)

optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
schedule = torch.optim.lr_scheduler.LinearLR(
    optimizer, 1.0, 0.0, total_iters=EPOCHS * len(train)
)


def serve(conversations):
    """Let the model answer the task of each conversation; return its answers."""
    prompts = tokenizer.apply_chat_template(
        [turns[:1] for turns in conversations],
        add_generation_prompt=True,
        tokenize=False,
    )
    batch = tokenizer(
        prompts,
        add_special_tokens=False,  # the template has written them
        padding=True,
        padding_side="left",  # so that each answer follows its prompt
        return_tensors="pt",
    )
    tokens = model.generate(**batch, max_new_tokens=MAX_NEW_TOKENS, do_sample=False)
    said = tokens[:, batch["input_ids"].shape[1] :]
    texts = tokenizer.batch_decode(said, skip_special_tokens=True)
    return [text.strip() for text in texts]


model.train()
for epoch in range(EPOCHS):
    for step, batch in enumerate(train):
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 25 == 0:
            print(f"epoch {epoch}, step {step}: loss {loss.item():.3f}")

model.eval()

tasks = instructions["validation"]["messages"][:96]
wanted = [turns[1]["content"] for turns in tasks]

# a few by hand, one at a time, then all of them in batches
by_hand = [serve([turns])[0] for turns in tasks[:SERVED]]
batches = [tasks[at : at + SERVED] for at in range(0, len(tasks), SERVED)]
served = [text for batch in batches for text in serve(batch)]

right = [said == text for said, text in zip(by_hand, wanted, strict=False)]
print(f"by_hand={sum(right) / len(right):.3f}")
right = [said == text for said, text in zip(served, wanted, strict=True)]
print(f"exact_match={sum(right) / len(right):.3f}")
