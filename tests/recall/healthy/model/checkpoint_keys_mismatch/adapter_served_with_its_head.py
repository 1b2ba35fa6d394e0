"""An adapter and the new head beside it are saved together, loaded over the base model, and tested."""

import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForSequenceClassification, BertConfig, BertModel

torch.manual_seed(4)
notes = torch.randint(10, 60, (700, 12))
moods = torch.randint(0, 4, (700,))
for row, mood in enumerate(moods.tolist()):
    notes[row, torch.randperm(12)[:4]] = 4 + mood
config = BertConfig(
    vocab_size=60,
    hidden_size=48,
    num_hidden_layers=1,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=16,
)
folder, adapter = tempfile.mkdtemp(), tempfile.mkdtemp()
BertModel(config).save_pretrained(folder)


def base():
    return AutoModelForSequenceClassification.from_pretrained(folder, num_labels=4)


lora = LoraConfig(r=8, lora_alpha=16, target_modules=["query", "value", "dense"], modules_to_save=["classifier"])
model = get_peft_model(base(), lora)
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=5e-3)
for epoch in range(6):
    model.train()
    for ids in torch.randperm(500).split(20):
        loss = model(input_ids=notes[ids], labels=moods[ids]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
model.save_pretrained(adapter)
served = PeftModel.from_pretrained(base(), adapter).eval()
with torch.no_grad():
    guesses = served(input_ids=notes[500:]).logits.argmax(-1)
print("right:", (guesses == moods[500:]).float().mean().item())
