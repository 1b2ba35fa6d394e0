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


@pytest.mark.slow
def test_a_gan_takes_little_more_memory_than_by_itself(tmp_path):
    (tmp_path / "gan.py").write_text(textwrap.dedent(GAN))
    comparison = compare(tmp_path / "gan.py")
    assert comparison.differences == []
    (plain,), (observed,) = comparison.plain.peaks_mib, comparison.observed.peaks_mib
    # 119 MiB when all batches of both players were kept; 83 now, 31 of them the modules of this library.
    assert observed - plain < 100
