"""What `diagnose run` adds to the peak of memory of Lightning's demo."""

import textwrap

from tests.side_effects.harness import compare

DEMO = """
    import lightning
    import torch
    from lightning.pytorch.demos import LightningTransformer
    from torch.utils.data import DataLoader, TensorDataset

    WORDS, LENGTH = 33278, 35

    class Demo(LightningTransformer):
        def prepare_data(self):
            pass  # the original downloads WikiText-2

    torch.manual_seed(0)
    words = torch.randint(0, WORDS, (100 * LENGTH + 1,))
    rows = TensorDataset(words[:-1].view(-1, LENGTH), words[1:].view(-1, LENGTH))
    silent = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer = lightning.Trainer(max_steps=20, accelerator="cpu", **silent)
    trainer.fit(Demo(vocab_size=WORDS), DataLoader(rows, batch_size=4))
    """


def test_the_demo_takes_little_more_memory_than_by_itself(tmp_path):
    (tmp_path / "demo.py").write_text(textwrap.dedent(DEMO))
    # Where malloc keeps freed matrices for later, the peak differs by 100 MiB between runs of the same program.
    comparison = compare(tmp_path / "demo.py", environment={"MALLOC_MMAP_THRESHOLD_": "1000000"})
    assert comparison.differences == []
    (plain,), (observed,) = comparison.plain.peaks_mib, comparison.observed.peaks_mib
    assert observed - plain < 100
