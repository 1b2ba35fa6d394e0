"""The page that leads from what a reader sees to the likely causes, and to the check that decides."""

import ast
import contextlib
import copy
import io
import random
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import PreTrainedTokenizerFast

from book.builder.outline import load as load_chapters
from book.builder.outline import shown
from book.generated.curves import Curve, Line
from book.generated.symptoms import Links, SymptomError, curves_of, load, symptoms_page
from bugs.zoo.keeper.catalogue import load_catalogue
from diagnostics.api.explain import explain
from diagnostics.rules.registry import all_rules

ROOT = Path(__file__).resolve().parents[4]
EXHIBITS = list(load_catalogue(ROOT).values())
LINKS = Links(EXHIBITS, load_chapters(ROOT / "book" / "chapters"), all_rules())
SYMPTOMS = load()
SHAPES = [shape for symptom in SYMPTOMS for shape in symptom.shapes]
CANDIDATES = [
    (symptom, candidate)
    for symptom in SYMPTOMS
    for candidate in (*symptom.candidates, *(one for shape in symptom.shapes for one in shape.candidates))
]
LINES = [line for symptom in SYMPTOMS for line in symptom.lines]
FALLING = Curve((Line("training loss", ((1, 2.0), (2, 1.0))),), 1.1)
PAGE = symptoms_page(SYMPTOMS, LINKS, {shape.id: FALLING for shape in SHAPES})


def test_every_rule_is_under_a_symptom():
    named = {name for symptom in SYMPTOMS for name in symptom.rules}
    assert named == {rule.name for rule in all_rules()}


def test_no_rule_is_twice_under_one_symptom():
    assert all(len(set(symptom.rules)) == len(symptom.rules) for symptom in SYMPTOMS)


def test_the_rule_of_a_candidate_is_among_the_rules_of_its_symptom():
    assert [(symptom.title, one.rule) for symptom, one in CANDIDATES if one.rule not in symptom.rules] == []


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.id)
def test_every_exhibit_is_linked(exhibit):
    assert f"[{shown(exhibit)}]({exhibit.page}.ipynb)" in PAGE


def test_an_exhibit_is_a_candidate_for_its_own_rule():
    named = [(one.exhibit, one.rule) for one in (*(one for _, one in CANDIDATES), *LINES)]
    alone = {"09"}  # its last line is that of any wrong shape
    for exhibit in (one for one in EXHIBITS if one.id not in alone):
        assert {rule for number, rule in named if number == exhibit.id} & set(exhibit.rules), exhibit.id


def test_nine_curves_lead_to_their_sections():
    links = re.findall(r'<a class="shape" href="#([\w-]+)"><svg', PAGE)
    assert len(links) == len(set(links)) == 9
    assert all(f"\n({link})=\n### " in PAGE for link in links)


def test_a_reader_without_a_curve_is_led_to_a_section_by_a_question():
    links = re.findall(r"^- .*\? → \[.*\]\(#(\S+)\)$", PAGE, re.MULTILINE)
    assert len(links) == 5
    assert all(f"\n({link})=\n## " in PAGE for link in links)


def test_a_candidate_has_its_check_and_its_links():
    section = PAGE.partition("\n### Falls, but far too slowly\n")[2].partition("\n### ")[0]
    assert "\n1. **Part of the model gets no gradient.**\n\n   ```python\n   print([name for name, p" in section
    assert "[unreached-parameters](rules/unreached-parameters.md) · [" in section
    assert "[chapter 8](chapters/08_gradients.ipynb)" in section


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda symptom: symptom.title)
def test_the_long_list_of_rules_is_folded(symptom):
    section = PAGE.partition(f"\n## {symptom.title}\n")[2].partition("\n## ")[0]
    fold = section.partition(f":::{{dropdown}} All {len(symptom.rules)} rules that may name the cause\n")[2]
    assert fold.partition("\n:::\n")[0].count("\n- [") == len(symptom.rules)


class TestLastLines:
    @pytest.mark.parametrize("line", LINES, ids=lambda line: line.line[:50])
    def test_explain_names_the_same_rule(self, line):
        assert [finding.rule for finding in explain(line.line).findings] == [line.rule]

    def test_are_ordered_by_the_type_of_the_exception_and_then_by_their_words(self):
        section = PAGE.partition("\n## It throws\n")[2].partition("All ")[0]
        types = re.findall(r"^:::\{dropdown\} (\w+)$", section, re.MULTILINE)
        assert types == sorted({line.exception for line in LINES})
        shown = re.findall(r"^- `(.*)`\\$", section, re.MULTILINE)
        of_type = [words for words in shown if f"RuntimeError: {words}" in {line.line for line in LINES}]
        assert len(shown) == len(LINES)
        assert of_type == sorted(of_type, key=str.lower)
        assert len(of_type) > 5


class TestChecks:
    """Each check runs in a healthy program, and says something else once the program has the bug."""

    @pytest.fixture
    def program(self):
        torch.manual_seed(0)
        dataset = TensorDataset(torch.randn(64, 4), torch.arange(64) % 3)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(dataset, batch_size=16, shuffle=True)
        loss_fn = nn.CrossEntropyLoss()
        inputs, labels = next(iter(loader))
        loss = loss_fn(model(inputs), labels)
        loss.backward()

        words = Tokenizer(WordLevel({"<s>": 0, "</s>": 1, "hello": 2, "world": 3}))
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<s>", eos_token="</s>")

        def evaluate(model, loader):
            model.eval()
            hits = [(model(inputs).argmax(dim=1) == labels).float().mean().item() for inputs, labels in loader]
            model.train()
            return sum(hits) / len(hits)

        return {
            **{"model": model, "optimizer": optimizer, "loss_fn": loss_fn, "loss": loss, "evaluate": evaluate},
            **{"dataset": dataset, "loader": loader, "inputs": inputs, "labels": labels},
            "validation": DataLoader(dataset, batch_size=16),
            "predictions": model(inputs).argmax(dim=1),
            "language_model": lambda tokens: torch.cumsum(
                tokens, dim=1
            ),  # causal: a position sees those before it
            "tokens": torch.arange(12).reshape(2, 6),
            **{
                "tokenizer": tokenizer,
                "batch": dict.fromkeys(("input_ids", "labels"), torch.tensor([[0, 2, 3, 1]])),
            },
            **{"train_texts": ["a", "b"], "test_texts": ["c"], "rank": 0, "pad": 0},
            **{"copy": copy, "random": random, "np": np, "torch": torch, "DataLoader": DataLoader},
        }

    def said(self, check, program):
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            exec(compile(check.strip("\n"), "check", "exec"), program)
        return written.getvalue()

    @pytest.mark.filterwarnings("ignore:User provided device_type")
    @pytest.mark.parametrize("candidate", [one for _, one in CANDIDATES], ids=lambda one: one.cause[:50])
    def test_runs_in_a_healthy_program(self, program, candidate):
        if candidate.check.startswith("$ "):
            assert "\n" not in candidate.check
        elif "tf." in candidate.check:
            ast.parse(candidate.check)
        else:
            self.said(candidate.check, program)
            torch.autograd.set_detect_anomaly(False)

    BUGS = {
        "optimizer-misses-parameters": lambda p: p["optimizer"].param_groups[0]["params"].pop(),
        "unreached-parameters": lambda p: setattr(p["model"][0].weight, "grad", None),
        "gradients-not-zeroed": lambda p: p["optimizer"].zero_grad(),  # the other way round
        "sorted-by-label": lambda p: p.update(
            loader=DataLoader(sorted(p["dataset"], key=lambda row: row[1].item()), batch_size=16)
        ),
        "non-finite-inputs": lambda p: p["inputs"].fill_(float("nan")),
        "labels-out-of-range": lambda p: p["labels"].fill_(7),
        "train-mode-evaluation": lambda p: p["model"].eval(),  # the other way round
        "leaked-evaluation-rows": lambda p: p["test_texts"].append("a"),
        "future-leak": lambda p: p.update(language_model=lambda tokens: tokens.flip(1)),
        "class-imbalance": lambda p: p["labels"].fill_(1),
        "shuffled-predictions": lambda p: p.update(validation=p["loader"]),
        "unscaled-inputs": lambda p: p["inputs"].mul_(1000),
        "update-below-precision": lambda p: p["model"].bfloat16(),
        "recreated-optimizer": lambda p: p["optimizer"].step(),
        "eos-never-learned": lambda p: p["batch"].update(labels=torch.tensor([[0, 2, 3, -100]])),
        "no-labels-left": lambda p: p["batch"].update(labels=torch.full((1, 4), -100)),
        "doubled-special-token": lambda p: p["batch"].update(input_ids=torch.tensor([[0, 0, 2, 1]])),
        "labels-shifted-twice": lambda p: p["batch"].update(labels=torch.tensor([[2, 3, 1]])),
        "examples-mixed": lambda p: p["model"].append(nn.Softmax(dim=0)),
        "uneven-accumulation": lambda p: p["dataset"].tensors[1][:20].fill_(-100),
        "padding-attended": lambda p: p["batch"].update(input_ids=torch.tensor([[0, 2, 1, 1]])),
        "packed-examples-attend": lambda p: p["batch"].update(position_ids=torch.tensor([[0, 1, 0, 1]])),
    }

    @pytest.mark.parametrize("rule", BUGS)
    def test_says_something_else_in_a_broken_program(self, program, rule):
        check = next(one.check for _, one in CANDIDATES if one.rule == rule)
        if rule == "recreated-optimizer":
            program["optimizer"] = torch.optim.Adam(program["model"].parameters())
        healthy = self.said(check, program)
        self.BUGS[rule](program)
        assert self.said(check, program) != healthy


class TestCurves:
    def test_are_those_that_the_notebooks_have_noted(self):
        noted = {shape.curve: [FALLING] for shape in SHAPES}
        assert curves_of(SYMPTOMS, noted) == {shape.id: FALLING for shape in SHAPES}

    def test_several_of_one_notebook_are_told_apart_by_their_shape(self):
        both = [Curve(FALLING.lines, shape=name) for name in ("overfits", "too-good")]
        noted = {shape.curve: [FALLING] for shape in SHAPES} | {"20_leaked_rows": both}
        found = curves_of(SYMPTOMS, noted)
        assert [found["overfits"].shape, found["too-good"].shape] == ["overfits", "too-good"]

    def test_a_notebook_that_has_noted_none_is_named(self):
        noted = {shape.curve: [FALLING] for shape in SHAPES} | {"13_detached_encoder": []}
        with pytest.raises(SymptomError) as raised:
            curves_of(SYMPTOMS, noted)
        assert str(raised.value) == "13_detached_encoder has noted 0 curves for the shape 'slow', not 1"


def test_more_than_five_candidates_are_refused(tmp_path):
    text = (ROOT / "book" / "symptoms.toml").read_text("utf-8")
    fourth = '{ cause = "The loss divides by zero'
    extra = '{ cause = "x", check = "x", decides = "x", rule = "x", chapter = 7 },\n'
    (tmp_path / "symptoms.toml").write_text(text.replace(fourth, f"{extra}{fourth}"), "utf-8")
    with pytest.raises(SymptomError, match=r"'NaN from the first step on' has 6 candidates, more than 5"):
        load(tmp_path / "symptoms.toml")


@pytest.mark.parametrize(
    ("words", "replacement", "missing"),
    [
        ('rule = "non-finite-inputs"', 'rule = "no-such-rule"', "no-such-rule"),
        ("chapter = 16", "chapter = 99", "99"),
    ],
)
def test_a_page_that_does_not_exist_is_an_error(tmp_path, words, replacement, missing):
    text = (ROOT / "book" / "symptoms.toml").read_text("utf-8")
    (tmp_path / "symptoms.toml").write_text(text.replace(words, replacement), "utf-8")
    with pytest.raises(KeyError, match=missing):
        symptoms_page(load(tmp_path / "symptoms.toml"), LINKS, {shape.id: FALLING for shape in SHAPES})
