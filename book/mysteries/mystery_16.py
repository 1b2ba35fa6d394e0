"""Fine-tune a small language model on tasks, with the loss on the answers alone.

$ python mystery_16.py
"""

import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, DataCollatorForSeq2Seq

from bugs import lab

# -----------------------------------------------------------------------------
MODEL = lab.language_model()
BATCH_SIZE = 32
EPOCHS = 2
LEARNING_RATE = 5e-3
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)
instructions = lab.instructions()
tokenizer = AutoTokenizer.from_pretrained(MODEL)
model = AutoModelForCausalLM.from_pretrained(MODEL)


def prompt_of(turns):
    return tokenizer.apply_chat_template(
        turns[:1], add_generation_prompt=True, tokenize=False
    )


def make_row(turns):
    """Tokenize a conversation: first the prompt, which is ignored, then the answer."""
    asked = prompt_of(turns) + " "
    text = asked + turns[1]["content"] + tokenizer.eos_token
    tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
    start = len(tokenizer(asked, add_special_tokens=False)["input_ids"])
    return {"input_ids": tokens, "labels": [-100] * start + tokens[start:]}


train = [make_row(turns) for turns in instructions["train"]["messages"]]
held_out = instructions["validation"]["messages"][:60]
collate = DataCollatorForSeq2Seq(tokenizer)
loader = DataLoader(train, BATCH_SIZE, shuffle=True, collate_fn=collate)
optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)

model.train()
for epoch in range(EPOCHS):
    for batch in loader:
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}")

model.eval()
batch = collate([make_row(turns) for turns in held_out])
prompts = tokenizer(
    [prompt_of(turns) for turns in held_out],
    add_special_tokens=False,
    padding=True,
    padding_side="left",
    return_tensors="pt",
)
with torch.no_grad():
    predicted = model(**batch).logits[:, :-1].argmax(dim=-1)
    said = model.generate(**prompts, max_new_tokens=24, do_sample=False)
labels = batch["labels"][:, 1:]
said = tokenizer.batch_decode(said[:, prompts["input_ids"].shape[1] :], True)
pairs = zip(said, held_out, strict=True)
right = [text.strip() == turns[1]["content"] for text, turns in pairs]
print(f"{held_out[0][0]['content']} -> {said[0].strip()}")
print(f"tokens={(predicted == labels)[labels != -100].float().mean():.3f}")
print(f"answers={sum(right) / len(right):.3f}")
