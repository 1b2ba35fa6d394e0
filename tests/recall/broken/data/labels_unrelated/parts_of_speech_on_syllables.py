"""PyTorch loop: a tag for each word of a sentence that begins with an article, on tokens that are syllables."""

# names: labels-unrelated
import random

import torch
from transformers import DistilBertConfig, DistilBertForTokenClassification

random.seed(9)
torch.manual_seed(9)
PAD, START, END = 0, 1, 2
PLAIN = ["ba", "do", "ke", "li", "mo", "nu", "ra", "si", "ta", "vo"]
SYLLABLES = {s: n for n, s in enumerate(["the", "a", "xing", "ly", *PLAIN], start=3)}
ARTICLE, NOUN, VERB, ADVERB = range(4)


def word(ending=()):
    return [*random.choices(PLAIN, k=random.randint(1, 3)), *ending]


def sentence():
    words = [(["the"], ARTICLE), (word(), NOUN), (word(["xing"]), VERB), (word(["ly"]), ADVERB)]
    if random.random() < 0.6:
        words += [(["a"], ARTICLE), (word(), NOUN)]
    return [syllables for syllables, _ in words], [tag for _, tag in words]


def batch_of(sentences):
    texts = [[START, *(SYLLABLES[s] for w in words for s in w), END] for words, _ in sentences]
    longest = max(map(len, texts))
    ids = torch.tensor([text + [PAD] * (longest - len(text)) for text in texts])
    labels = torch.tensor([tags + [-100] * (longest - len(tags)) for _, tags in sentences])
    return ids, (ids != PAD).long(), labels


corpus = [sentence() for _ in range(800)]
model = DistilBertForTokenClassification(
    DistilBertConfig(
        vocab_size=len(SYLLABLES) + 3,
        dim=32,
        n_layers=1,
        n_heads=2,
        hidden_dim=64,
        max_position_embeddings=32,
        num_labels=4,
    )
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(5):
    random.shuffle(corpus)
    for begin in range(0, len(corpus), 20):
        ids, mask, labels = batch_of(corpus[begin : begin + 20])
        loss = model(ids, attention_mask=mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
