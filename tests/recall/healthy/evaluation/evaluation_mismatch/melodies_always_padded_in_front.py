"""A GPT-2 answers with the last note but one of a melody; melodies are padded in front throughout."""

import torch
from torch import nn
from transformers import GPT2Config, GPT2Model

torch.manual_seed(7)
PAD, ASK, NOTES = 0, 1, 14


class LatestNote(nn.Module):
    def __init__(self):
        super().__init__()
        config = GPT2Config(vocab_size=16, n_positions=24, n_embd=48, n_layer=2, n_head=4)
        config.resid_pdrop = config.embd_pdrop = config.attn_pdrop = 0.0
        self.body, self.head = GPT2Model(config), nn.Linear(48, 16)

    def forward(self, notes, mask):
        return self.head(self.body(notes, attention_mask=mask).last_hidden_state)


def melodies(rows, pad_in_front):
    notes, mask = torch.full((rows, 14), PAD), torch.zeros(rows, 14, dtype=torch.long)
    lengths = torch.randint(4, 15, (rows,))
    lengths[0] = 14
    answers = torch.empty(rows, dtype=torch.long)
    for row, length in enumerate(lengths.tolist()):
        melody = torch.cat([torch.randint(2, 2 + NOTES, (length - 1,)), torch.tensor([ASK])])
        place = slice(14 - length, None) if pad_in_front else slice(length)
        notes[row, place], mask[row, place], answers[row] = melody, 1, melody[-3]
    return notes, mask, lengths, answers


model = LatestNote()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(300):
    notes, mask, lengths, answers = melodies(48, pad_in_front=True)
    logits = model(notes, mask)[:, -1]
    loss = nn.functional.cross_entropy(logits, answers)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(f"step {step + 1}: loss {loss.item():.4f}")

model.eval()
right = 0
with torch.no_grad():
    for _ in range(4):
        notes, mask, lengths, answers = melodies(50, pad_in_front=True)
        right += int((model(notes, mask)[:, -1].argmax(1) == answers).sum())
print(f"accuracy {right / 200:.3f}")
