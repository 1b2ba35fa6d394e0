"""The small language model: trained once, whole or not at all, and what a decoder's directory holds."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from bugs import lab
from bugs.lab.cache import LabError, damage
from bugs.lab.language_model import build

BUILDER = """
from functools import partial
from bugs.lab.cache import built
from bugs.lab.language_model import build
print(built("model", "a language model of two steps", partial(build, steps=2)))
"""
TURNS = [
    {"role": "user", "content": "How many things are these: figs, maps"},
    {"role": "assistant", "content": "two."},
]


@pytest.fixture(scope="module")
def directory() -> str:
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("ZOO_LM", raising=False)
        return lab.language_model()


@pytest.fixture(scope="module")
def tokenizer(directory):
    return AutoTokenizer.from_pretrained(directory)


class TestTokenizer:
    def test_each_special_token_has_its_own_id(self, tokenizer):
        assert (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 1, 2)

    def test_a_text_begins_with_the_start_token_and_has_no_end_token(self, tokenizer):
        tokens = tokenizer("On the table: red figs.")["input_ids"]
        assert tokens[0] == 1
        assert not {0, 1, 2} & set(tokens[1:])
        assert tokenizer.decode(tokens, skip_special_tokens=True) == "On the table: red figs."

    def test_any_text_is_read(self, tokenizer):
        text = "Zoë pays 3 €"
        assert tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True) == text

    def test_the_template_writes_one_start_and_one_end(self, tokenizer):
        text = tokenizer.apply_chat_template(TURNS, tokenize=False)
        assert text == "<s>### User: How many things are these: figs, maps\n### Assistant: two.</s>"
        encoded = tokenizer.apply_chat_template(TURNS, return_dict=True, return_assistant_tokens_mask=True)
        marked = zip(encoded["input_ids"], encoded["assistant_masks"], strict=True)
        answer = [token for token, own in marked if own]
        assert tokenizer.decode(answer) == " two.</s>"

    def test_a_prompt_is_how_a_conversation_begins(self, tokenizer):
        prompt = tokenizer.apply_chat_template(TURNS[:1], add_generation_prompt=True)["input_ids"]
        whole = tokenizer.apply_chat_template(TURNS)["input_ids"]
        assert whole[: len(prompt)] == prompt


class TestModel:
    @pytest.mark.parametrize(
        ("note", "goes_on"),
        [
            ("On the shelf: pears, jars, boats. By the alphabet:", " boats, jars, pears."),
            ("In the parcel: figs, cups, tents. Things in it:", " three."),
            ("On the table: red figs, blue hats. Again: red figs, blue hats. Sold: blue", " hats"),
        ],
    )
    def test_it_has_learned_to_sort_to_count_and_to_look_up(self, directory, tokenizer, note, goes_on):
        model = AutoModelForCausalLM.from_pretrained(directory)
        tokens = tokenizer(note, return_tensors="pt")
        wanted = tokenizer(goes_on, add_special_tokens=False)["input_ids"]
        said = model.generate(**tokens, max_new_tokens=len(wanted), do_sample=False)
        assert said[0, -len(wanted) :].tolist() == wanted

    def test_it_is_loaded_whole(self, directory):
        _, report = AutoModelForCausalLM.from_pretrained(directory, output_loading_info=True)
        assert {name: sorted(keys) for name, keys in report.items() if keys} == {}


class TestBuild:
    def test_two_builds_give_the_same_bytes(self, tmp_path):
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            build(tmp_path / name, steps=2)
        first, second = (
            {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("first", "second")
        )
        assert first == second

    @pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.exhaustive)])
    def test_a_build_killed_at_any_moment_leaves_a_whole_model_or_none(self, tmp_path, kills):
        started = time.monotonic()
        assert _builder(tmp_path / "whole").wait(240) == 0
        lasts = time.monotonic() - started
        for number in range(kills):
            builder = _builder(tmp_path / f"{number}")
            time.sleep(random.uniform(0.3, 1.1) * lasts)
            if builder.poll() is None:
                os.killpg(builder.pid, signal.SIGKILL)
            builder.wait()
            model = tmp_path / f"{number}" / "model"
            assert not model.exists() or damage(model) in (None, "its build was not completed")
            assert _builder(tmp_path / f"{number}").wait(240) == 0
            assert damage(model) is None
            AutoModelForCausalLM.from_pretrained(model)


def _builder(zoo_cache: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "ZOO_CACHE": str(zoo_cache)}
    return subprocess.Popen(
        [sys.executable, "-c", BUILDER],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


class TestNamedModel:
    def test_a_name_of_the_hub_is_passed_on(self, monkeypatch):
        monkeypatch.setenv("ZOO_LM", "HuggingFaceTB/SmolLM2-135M")
        assert lab.language_model() == "HuggingFaceTB/SmolLM2-135M"

    def test_a_directory_without_a_model_is_refused(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ZOO_LM", str(tmp_path))
        with pytest.raises(LabError) as raised:
            lab.language_model()
        assert str(raised.value) == (
            f"ZOO_LM={tmp_path}: that directory holds no model, for it has no config.json."
        )
