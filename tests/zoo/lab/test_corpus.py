"""The corpus as scripts get it: generated, or one of the reader's own."""

import collections
import json
import os
import subprocess
import sys
from pathlib import Path

import datasets
import pytest

from bugs import lab
from bugs.lab.cache import LabError
from bugs.lab.corpus import SIZES

LABELS = ["entailment", "neutral", "contradiction"]
ROWS = {
    "premise": ["A dog sleeps.", "It rains.", "Two men talk.", "The door is open."],
    "hypothesis": ["An animal rests.", "It is dry.", "They are brothers.", "Somebody came in."],
    "label": [0, 2, 1, -1],
}


@pytest.fixture(autouse=True)
def no_dataset_named(monkeypatch, tmp_path_factory):
    monkeypatch.delenv("ZOO_DATASET", raising=False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("datasets"))


@pytest.fixture(scope="module")
def corpus() -> datasets.DatasetDict:
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("ZOO_DATASET", raising=False)
        return lab.corpus()


class TestImport:
    def test_importing_the_lab_imports_no_framework(self):
        script = "import sys; from bugs import lab; print([name for name in ('torch', 'datasets', 'transformers', "
        script += "'tensorflow', 'numpy', 'rich', 'filelock') if name in sys.modules])"
        assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"


class TestGenerated:
    def test_it_has_the_splits_columns_and_labels_of_the_contract(self, corpus):
        assert {name: len(rows) for name, rows in corpus.items()} == SIZES
        assert SIZES["train"] >= 8_000
        assert SIZES["validation"] >= 1_000
        for rows in corpus.values():
            assert rows.column_names == ["premise", "hypothesis", "label"]
            assert rows.features["label"].names == LABELS

    def test_labels_are_balanced_and_not_sorted(self, corpus):
        for rows in corpus.values():
            labels = rows["label"][:]
            assert set(collections.Counter(labels).values()) == {len(labels) // 3}
            for start in range(0, len(labels) - 100, 100):
                assert max(collections.Counter(labels[start : start + 100]).values()) < 60

    def test_no_premise_of_the_validation_split_was_trained_on(self, corpus):
        assert set(corpus["train"]["premise"][:]) & set(corpus["validation"]["premise"][:]) == set()

    def test_no_pair_comes_twice(self, corpus):
        for rows in corpus.values():
            assert len(set(zip(rows["premise"][:], rows["hypothesis"][:], strict=True))) == len(rows)

    def test_map_writes_nothing_beside_the_corpus(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ZOO_CACHE", str(tmp_path))
        corpus = lab.corpus()
        before = sorted(tmp_path.rglob("*"))
        mapped = corpus.map(lambda examples: {"length": [len(text) for text in examples["premise"]]}, batched=True)
        assert mapped["train"][0]["length"] == len(corpus["train"][0]["premise"])
        assert sorted(tmp_path.rglob("*")) == before
        assert [rows.cache_files for rows in (*corpus.values(), *mapped.values())] == [[]] * 4


class TestSameBytes:
    @pytest.mark.exhaustive
    def test_two_processes_write_the_same_corpus_and_checkpoint(self, tmp_path):
        script = "from bugs import lab; lab.corpus(); lab.checkpoint()"
        builders = [
            subprocess.Popen(
                [sys.executable, "-c", script],
                env=os.environ
                | {"ZOO_CACHE": str(tmp_path / seed), "PYTHONHASHSEED": seed, "ZOO_MODEL": "", "ZOO_DATASET": ""},
                stderr=subprocess.PIPE,
                text=True,
            )
            for seed in ("1", "2")
        ]
        for builder in builders:
            _, said = builder.communicate(timeout=120)
            assert builder.returncode == 0, said
        first, second = (
            {str(path.relative_to(tmp_path / seed)): path.read_bytes() for path in files_under(tmp_path / seed)}
            for seed in ("1", "2")
        )
        assert len(first) > 10
        assert {name for name in first | second if first.get(name) != second.get(name)} == set()


def files_under(directory: Path) -> list[Path]:
    """Every file below, locks left out."""
    return [path for path in sorted(directory.rglob("*")) if path.is_file() and path.suffix != ".lock"]


class TestNamedDataset:
    def name(self, monkeypatch, directory: Path) -> None:
        monkeypatch.setenv("ZOO_DATASET", str(directory))

    def test_a_directory_written_by_save_to_disk(self, monkeypatch, tmp_path):
        features = datasets.Features(
            premise=datasets.Value("string"),
            hypothesis=datasets.Value("string"),
            label=datasets.ClassLabel(names=LABELS),
            idx=datasets.Value("int32"),
        )
        rows = datasets.Dataset.from_dict({**ROWS, "idx": [7, 8, 9, 10]}, features=features)
        datasets.DatasetDict(train=rows, validation_matched=rows, test_matched=rows).save_to_disk(tmp_path)
        self.name(monkeypatch, tmp_path)
        corpus = lab.corpus()
        assert sorted(corpus) == ["train", "validation"]
        for split in corpus.values():
            assert split.column_names == ["premise", "hypothesis", "label"]
            assert split["label"][:] == [0, 2, 1]
            assert split["premise"][:] == ROWS["premise"][:3]
            assert split.features["label"].names == LABELS

    @pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
    def test_a_directory_of_files(self, monkeypatch, tmp_path, kind):
        rows = datasets.Dataset.from_dict(ROWS)
        for split in ("train", "validation"):
            getattr(rows, f"to_{kind}")(str(tmp_path / f"{split}.{kind}"))
        self.name(monkeypatch, tmp_path)
        corpus = lab.corpus()
        assert corpus["validation"]["label"][:] == [0, 2, 1]
        assert corpus["train"].features["label"].names == LABELS

    def test_labels_given_by_name_in_any_order_are_numbered_as_ours(self, monkeypatch, tmp_path):
        theirs = ["contradiction", "entailment", "neutral"]
        rows = datasets.Dataset.from_dict({**ROWS, "label": [1, 0, 2, -1]})
        rows = rows.cast_column("label", datasets.ClassLabel(names=theirs))
        datasets.DatasetDict(train=rows, validation=rows).save_to_disk(tmp_path / "numbered")
        self.name(monkeypatch, tmp_path / "numbered")
        assert lab.corpus()["train"]["label"][:] == [0, 2, 1]

        (tmp_path / "named").mkdir()
        lines = [
            json.dumps({"premise": premise, "hypothesis": "It is so.", "label": label})
            for premise, label in zip(
                ROWS["premise"], ["Entailment", "contradiction", "neutral", "-"], strict=True
            )
        ]
        for split in ("train", "dev"):
            (tmp_path / "named" / f"{split}.jsonl").write_text("\n".join(lines))
        self.name(monkeypatch, tmp_path / "named")
        assert lab.corpus()["validation"]["label"][:] == [0, 2, 1]

    def test_wrong_columns_are_named(self, monkeypatch, tmp_path):
        rows = datasets.Dataset.from_dict({"sentence1": ["A"], "sentence2": ["B"], "label": [0]})
        datasets.DatasetDict(train=rows, validation=rows).save_to_disk(tmp_path)
        self.name(monkeypatch, tmp_path)
        with pytest.raises(LabError) as raised:
            lab.corpus()
        assert str(raised.value) == (
            f"The data set '{tmp_path}', split train, has no column premise or hypothesis; it has sentence1, "
            "sentence2, label. The exhibits need premise, hypothesis, label, as in nyu-mll/glue:mnli."
        )

    def test_a_missing_split_is_named(self, monkeypatch, tmp_path):
        datasets.DatasetDict(train=datasets.Dataset.from_dict(ROWS)).save_to_disk(tmp_path)
        self.name(monkeypatch, tmp_path)
        with pytest.raises(LabError) as raised:
            lab.corpus()
        assert str(raised.value) == (
            f"The data set '{tmp_path}' has train; the exhibits need a split named train and one for validation "
            "(validation, validation_matched, dev, valid, eval)."
        )

    def test_a_single_split_saved_alone_is_refused(self, monkeypatch, tmp_path):
        datasets.Dataset.from_dict(ROWS).save_to_disk(tmp_path)
        self.name(monkeypatch, tmp_path)
        with pytest.raises(LabError, match="has no named splits; the exhibits need a split named train"):
            lab.corpus()

    def test_labels_of_another_task_are_refused(self, monkeypatch, tmp_path):
        rows = datasets.Dataset.from_dict({**ROWS, "label": ["positive", "negative", "neutral", "positive"]})
        datasets.DatasetDict(train=rows, validation=rows).save_to_disk(tmp_path)
        self.name(monkeypatch, tmp_path)
        with pytest.raises(LabError) as raised:
            lab.corpus()
        assert str(raised.value) == (
            f"The data set '{tmp_path}', split train, has labels that the exhibits do not know: negative, "
            "positive. They need entailment, neutral and contradiction, by name or as 0, 1 and 2."
        )

    def test_a_directory_without_data_is_explained(self, monkeypatch, tmp_path):
        self.name(monkeypatch, tmp_path)
        with pytest.raises(LabError, match=f"The data set '{tmp_path}' cannot be loaded: "):
            lab.corpus()

    def test_a_name_that_the_hub_cannot_answer_for_is_explained(self, tmp_path):
        ended = subprocess.run(
            [sys.executable, "-c", "from bugs import lab; lab.corpus()"],
            env=os.environ
            | {"ZOO_DATASET": "nobody/nothing:at-all", "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 1
        assert "Traceback" not in ended.stderr
        assert ended.stderr.startswith("The data set 'nobody/nothing:at-all' cannot be loaded: ")
        assert (
            "ZOO_DATASET takes a name on the Hugging Face hub, with its configuration behind a colon"
            in ended.stderr
        )
