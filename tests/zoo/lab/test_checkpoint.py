"""The tiny checkpoint: one directory, two frameworks, the same numbers."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from bugs import lab
from bugs.lab.cache import LabError
from bugs.lab.checkpoint import SPECIAL, VERSION, vocabulary

MODEL_FILES = ("config.json", "model.safetensors")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt")
# sha256 of the vocabulary of the current version, one piece a line
DIGESTS = {3: "c7208060e5568cc7dfa977aac7ecdfd889aae8194c3175659bdbff4e4529def9"}


@pytest.fixture(scope="module")
def directory() -> str:
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("ZOO_MODEL", raising=False)
        return lab.checkpoint()


@pytest.fixture(scope="module")
def tokenizer(directory):
    return AutoTokenizer.from_pretrained(directory)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("ZOO_DATASET", raising=False)
        validation = lab.corpus()["validation"][:200]
    odd = [
        "Unbelievable! It's 3,000 km (1,864 mi) - wow?",
        "the fishmonger's zebra_crossing",
        "50% of [this] {and} #that",
    ]
    return validation["premise"] + validation["hypothesis"] + odd


@pytest.fixture(scope="module")
def keras_hub():
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    import keras_hub

    return keras_hub


class TestVocabulary:
    def test_it_changes_only_with_the_version(self):
        digest = hashlib.sha256("\n".join(vocabulary()).encode()).hexdigest()
        assert digest == DIGESTS.get(VERSION), (
            "the vocabulary differs from what was recorded: raise VERSION in bugs/lab/checkpoint.py and record "
            "the new digest here"
        )

    def test_padding_is_id_0_and_no_piece_comes_twice(self):
        pieces = vocabulary()
        assert pieces[:5] == list(SPECIAL)
        assert pieces[0] == "[PAD]"
        assert len(set(pieces)) == len(pieces)

    def test_some_words_of_the_corpus_split_and_none_is_unknown(self, tokenizer, texts):
        split = {piece for text in texts for piece in tokenizer.tokenize(text)}
        assert any(piece.startswith("##") for piece in split)
        assert "[UNK]" not in split

    def test_pieces_join_to_the_lower_cased_text(self, tokenizer):
        ids = tokenizer("A Fisherman repaired 1,864 nets.")["input_ids"]
        assert tokenizer.decode(ids) == "[CLS] a fisherman repaired 1, 864 nets. [SEP]"


class TestCheckpoint:
    def test_it_is_a_directory_as_hugging_face_writes_it(self, directory):
        names = {path.name for path in Path(directory).iterdir()}
        assert names == {*MODEL_FILES, *TOKENIZER_FILES}
        config = json.loads((Path(directory) / "config.json").read_text())
        assert config["model_type"] == "distilbert"
        assert config["architectures"] == ["DistilBertModel"]
        assert config["vocab_size"] == len((Path(directory) / "vocab.txt").read_text().splitlines())

    def test_the_encoder_is_loaded_whole(self, directory):
        _, report = AutoModel.from_pretrained(directory, output_loading_info=True)
        assert {name: sorted(keys) for name, keys in report.items() if keys} == {}

    def test_only_the_head_is_new_whatever_the_number_of_labels(self, directory):
        for labels in (2, 3):
            model, report = AutoModelForSequenceClassification.from_pretrained(
                directory, num_labels=labels, output_loading_info=True
            )
            assert model.classifier.out_features == labels
            head = [f"{layer}.{kind}" for layer in ("classifier", "pre_classifier") for kind in ("bias", "weight")]
            assert {name: sorted(keys) for name, keys in report.items() if keys} == {"missing_keys": head}

    def test_building_it_leaves_the_callers_random_numbers_alone(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ZOO_CACHE", str(tmp_path))
        monkeypatch.delenv("ZOO_MODEL", raising=False)
        before = torch.get_rng_state()
        lab.checkpoint()
        assert torch.equal(torch.get_rng_state(), before)


class TestWider:
    def test_another_width_and_depth_is_another_checkpoint_with_smaller_weights(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ZOO_CACHE", str(tmp_path))
        monkeypatch.delenv("ZOO_MODEL", raising=False)
        model = AutoModel.from_pretrained(lab.checkpoint(width=192, layers=1))
        assert (model.config.dim, model.config.n_layers, model.config.n_heads) == (192, 1, 3)
        assert model.embeddings.word_embeddings.weight.std().item() == pytest.approx(0.04, rel=0.02)
        assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [f"checkpoint-{VERSION}-192x1"]


class TestKerasHub:
    def test_both_tokenizers_agree(self, keras_hub, directory, tokenizer, texts):
        theirs = keras_hub.models.DistilBertTokenizer.from_preset(directory)
        for text in texts:
            assert np.array(theirs(text)).tolist() == tokenizer(text, add_special_tokens=False)["input_ids"], text

    def test_both_backbones_agree(self, keras_hub, directory, tokenizer, texts):
        batch = tokenizer(texts[:16], padding=True, return_tensors="pt")
        with torch.no_grad():
            ours = AutoModel.from_pretrained(directory).eval()(**batch).last_hidden_state.numpy()
        backbone = keras_hub.models.Backbone.from_preset(directory)
        mask = batch["attention_mask"].numpy()
        theirs = np.array(backbone({"token_ids": batch["input_ids"].numpy(), "padding_mask": mask}))
        assert ours.std() > 0.5
        np.testing.assert_allclose(theirs[mask == 1], ours[mask == 1], atol=1e-4)

    def test_the_text_classifier_takes_three_classes(self, keras_hub, directory):
        classifier = keras_hub.models.DistilBertTextClassifier.from_preset(directory, num_classes=3)
        assert classifier.predict(["It is raining.", "Nobody is asleep."], verbose=0).shape == (2, 3)


class TestNamedModel:
    def test_a_name_of_the_hub_is_handed_on(self, monkeypatch):
        monkeypatch.setenv("ZOO_MODEL", "distilbert-base-uncased")
        assert lab.checkpoint() == "distilbert-base-uncased"
        assert lab.preset(lab.checkpoint()) == "hf://distilbert-base-uncased"

    def test_a_directory_with_a_model_is_handed_on(self, monkeypatch, directory):
        monkeypatch.setenv("ZOO_MODEL", directory)
        assert lab.checkpoint() == directory
        assert lab.preset(lab.checkpoint()) == directory

    def test_a_directory_without_one_is_refused(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ZOO_MODEL", str(tmp_path))
        with pytest.raises(LabError) as raised:
            lab.checkpoint()
        assert (
            str(raised.value) == f"ZOO_MODEL={tmp_path}: that directory holds no model, for it has no config.json."
        )

    def test_a_path_that_is_not_there_is_refused(self, monkeypatch):
        monkeypatch.setenv("ZOO_MODEL", "./no/such/model")
        with pytest.raises(LabError) as raised:
            lab.checkpoint()
        assert str(raised.value) == (
            "ZOO_MODEL=./no/such/model: there is no such directory. Give a directory written by save_pretrained, "
            "a name on the Hugging Face hub (distilbert-base-uncased), or unset it to use the zoo's own "
            "checkpoint."
        )
