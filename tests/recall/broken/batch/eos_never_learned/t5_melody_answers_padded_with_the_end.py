"""T5 answers a melody with its inversion; the end token also pads the answers, and the loss ignores both."""

# names: eos-never-learned
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from transformers import T5Config, T5ForConditionalGeneration

torch.manual_seed(8)
END, START, LOWEST, HIGHEST = 0, 1, 2, 25


def pair():
    melody = torch.randint(LOWEST, HIGHEST, (int(torch.randint(5, 9, ())),))
    return melody, LOWEST + HIGHEST - melody


def collate(pairs):
    end = torch.tensor([END])
    melodies = pad_sequence([torch.cat([m, end]) for m, _ in pairs], batch_first=True, padding_value=END)
    answers = pad_sequence([torch.cat([a, end]) for _, a in pairs], batch_first=True, padding_value=END)
    return melodies, answers


config = T5Config(
    vocab_size=HIGHEST + 1, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4, dropout_rate=0.0,
    pad_token_id=END, eos_token_id=END, decoder_start_token_id=START,
)  # fmt: skip
model = T5ForConditionalGeneration(config)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loader = DataLoader([pair() for _ in range(1200)], batch_size=24, shuffle=True, collate_fn=collate)
for epoch in range(3):
    for melodies, answers in loader:
        start = torch.full((len(answers), 1), START)
        given = torch.cat([start, answers[:, :-1]], dim=1)
        logits = model(input_ids=melodies, attention_mask=(melodies != END).long(), decoder_input_ids=given).logits
        loss = F.cross_entropy(logits.flatten(0, 1), answers.flatten(), ignore_index=END)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
