"""BERT's head for tags with a loss by hand: cross entropy on multi-hot labels."""

# names: targets-out-of-reach
import torch
from torch import nn
from transformers import BertConfig, BertModel

torch.manual_seed(0)
ids = torch.randint(5, 60, (400, 10))
Y = torch.stack([(ids % 7 == k).any(1) for k in range(5)], 1).float()


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = BertModel(
            BertConfig(
                vocab_size=60,
                hidden_size=32,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=64,
                max_position_embeddings=16,
            )
        )
        self.o = nn.Linear(32, 5)

    def forward(self, i):
        return self.o(self.b(input_ids=i).pooler_output)


net = Tagger()
opt = torch.optim.AdamW(net.parameters(), 0.001)
for epoch in range(4):
    for a, b in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(ids, Y), 20, shuffle=True):
        loss = nn.CrossEntropyLoss()(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
