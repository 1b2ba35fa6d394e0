"""What `diagnose run` adds to the peak of a program's memory."""

import textwrap

import pytest

from tests.side_effects.harness import compare

GAN = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    def block(inputs, outputs):
        return nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs, 0.8), nn.LeakyReLU(0.2, inplace=True)

    torch.manual_seed(0)
    generator = nn.Sequential(
        nn.Linear(100, 128), nn.LeakyReLU(0.2, inplace=True), *block(128, 256), *block(256, 512),
        *block(512, 1024), nn.Linear(1024, 784), nn.Tanh(),
    )
    discriminator = nn.Sequential(
        nn.Linear(784, 512), nn.LeakyReLU(0.2, inplace=True), nn.Linear(512, 256),
        nn.LeakyReLU(0.2, inplace=True), nn.Linear(256, 1), nn.Sigmoid(),
    )
    images = torch.tanh(torch.randn(4096, 8) @ torch.randn(8, 784))
    loader = DataLoader(TensorDataset(images), batch_size=64, shuffle=True)
    loss_of = nn.BCELoss()
    of_generator = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    for epoch in range(3):
        for (real,) in loader:
            valid, fake = torch.ones(len(real), 1), torch.zeros(len(real), 1)
            of_generator.zero_grad()
            made = generator(torch.randn(len(real), 100))
            loss = loss_of(discriminator(made), valid)
            loss.backward()
            of_generator.step()
            of_discriminator.zero_grad()
            (loss_of(discriminator(real), valid) + loss_of(discriminator(made.detach()), fake)).backward()
            of_discriminator.step()
    print(loss.item())
    """

# Most of its weights are two matrices over the words, as in Lightning's demo.
LANGUAGE_MODEL = """
    import torch
    from torch import nn
    from torch.nn import functional as F
    from torch.utils.data import DataLoader, TensorDataset

    WORDS, WIDTH, LENGTH = 33278, 200, 35

    class LanguageModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(WORDS, WIDTH)
            self.positions = nn.Embedding(LENGTH, WIDTH)
            layer = nn.TransformerEncoderLayer(WIDTH, 2, WIDTH, dropout=0.2, batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.decoder = nn.Linear(WIDTH, WORDS)

        def forward(self, words):
            mask = nn.Transformer.generate_square_subsequent_mask(words.shape[1])
            hidden = self.embedding(words) + self.positions.weight[: words.shape[1]]
            scores = self.decoder(self.layers(hidden, mask=mask, is_causal=True))
            return F.log_softmax(scores, dim=-1).view(-1, WORDS)

    torch.manual_seed(0)
    words = (torch.rand(48 * LENGTH + 1) ** 4 * WORDS).long()
    rows = TensorDataset(words[:-1].view(-1, LENGTH), words[1:].view(-1, LENGTH))
    model = LanguageModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for read, following in DataLoader(rows):
        optimizer.zero_grad()
        loss = F.nll_loss(model(read), following.view(-1))
        loss.backward()
        optimizer.step()
    print(loss.item())
    """


@pytest.mark.slow
def test_a_language_model_takes_little_more_memory_than_by_itself(tmp_path):
    (tmp_path / "words.py").write_text(textwrap.dedent(LANGUAGE_MODEL))
    # Where malloc keeps freed matrices for later, the peak differs by 100 MiB between runs of the same program.
    comparison = compare(tmp_path / "words.py", environment={"MALLOC_MMAP_THRESHOLD_": "1000000"})
    assert comparison.differences == []
    (plain,), (observed,) = comparison.plain.peaks_mib, comparison.observed.peaks_mib
    assert observed - plain < 100


@pytest.mark.slow
def test_a_gan_takes_little_more_memory_than_by_itself(tmp_path):
    (tmp_path / "gan.py").write_text(textwrap.dedent(GAN))
    comparison = compare(tmp_path / "gan.py")
    assert comparison.differences == []
    (plain,), (observed,) = comparison.plain.peaks_mib, comparison.observed.peaks_mib
    # 119 MiB when all batches of both players were kept; 83 now, 31 of them the modules of this library.
    assert observed - plain < 100
