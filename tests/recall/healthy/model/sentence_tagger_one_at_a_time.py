"""The tutorial's tagger of parts of speech: one sentence is one batch, its words are the rows."""

import torch
from torch import nn

torch.manual_seed(1)
VOCAB, TAGS = 30, 3
tag_of = torch.randint(TAGS, (VOCAB,))


class LSTMTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 8)
        self.lstm = nn.LSTM(8, 16)
        self.hidden2tag = nn.Linear(16, TAGS)

    def forward(self, sentence):
        embeds = self.embed(sentence)
        out, _ = self.lstm(embeds.view(len(sentence), 1, -1))
        return nn.functional.log_softmax(self.hidden2tag(out.view(len(sentence), -1)), dim=1)


model = LSTMTagger()
loss_fn = nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(300):
    sentence = torch.randint(VOCAB, (int(torch.randint(9, 16, (1,))),))
    model.zero_grad()
    loss = loss_fn(model(sentence), tag_of[sentence])
    loss.backward()
    optimizer.step()
print("loss", round(loss.item(), 3))
