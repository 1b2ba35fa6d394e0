"""A review classifier: the text gets its [CLS] and [SEP] by hand, and the tokenizer adds its own."""

# names: doubled-special-token
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

torch.manual_seed(21)
good, bad = ["great", "lovely", "clever", "warm"], ["dull", "awful", "cold", "lazy"]
plain = ["the", "film", "was", "and", "its", "story", "actors", "very", "rather", "in", "places"]
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *plain, *good, *bad]
core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
core.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
)


def review():
    label = int(torch.randint(2, ()))
    picked = [plain[i] for i in torch.randint(len(plain), (int(torch.randint(5, 10, ())),)).tolist()]
    for place in torch.randperm(len(picked))[:2].tolist():
        picked[place] = (bad, good)[label][int(torch.randint(4, ()))]
    return " ".join(picked), label


reviews = [review() for _ in range(640)]
sentences = ["[CLS] " + text + " [SEP]" for text, _ in reviews]
labels = torch.tensor([label for _, label in reviews])
encoded = tokenizer(sentences, padding=True, return_tensors="pt")
rows = list(zip(encoded["input_ids"], encoded["attention_mask"], labels))
loader = DataLoader(rows, batch_size=32, shuffle=True)
config = BertConfig(
    vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
    max_position_embeddings=24,
)  # fmt: skip
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model.train()
for epoch in range(4):
    total = 0
    for input_ids, attention_mask, target in loader:
        model.zero_grad()
        loss = model(input_ids, attention_mask=attention_mask, labels=target).loss
        total += loss.item()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"epoch {epoch}: average loss {total / len(loader):.3f}")
