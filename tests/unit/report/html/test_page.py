"""The page of HTML: what a reader finds in it, and what must not be in it."""

import dataclasses
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from diagnostics.engine.finding import Finding
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash import FrameFacts as Line
from diagnostics.facts.layers import RangeFacts
from diagnostics.facts.nonfinite import FrameFacts, OriginFacts, ValueRange
from diagnostics.facts.training import StepHistory, TraceFacts, TrainingHistory
from diagnostics.facts.where import Where
from diagnostics.failed_batch import FailedBatch
from diagnostics.report.contents import StageResult
from diagnostics.report.html.page import page
from diagnostics.report.report import Report
from diagnostics.rules.registry import all_rules
from tests.support.courses import recorded

VOID = {"meta", "br", "path", "polyline", "polygon"}
FETCHING = {"href", "src", "srcset", "xlink:href", "action", "data", "poster", "background"}


class Page(HTMLParser):
    """Reads a page as strictly as browsers do not: what is opened must be closed, in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.text.append(data)

    @property
    def words(self):
        return re.sub(r"\s+", " ", " ".join(self.text))


def history(count=6, **known):
    """Three layers: one that gets no gradient, one that is NaN in the last step."""
    norms = np.tile(np.array([[1.0, 0.0, 100.0]]), (count, 1))
    norms[-1, 2] = np.nan
    losses = np.linspace(2.0, 1.0, count)
    losses[-1] = np.nan
    plain = {
        "total_steps": count,
        "steps": np.arange(count),
        "layers": ("embed", "body.<b>", "head"),
        "gradient_norms": np.linalg.norm(norms, axis=1).astype(np.float32),
        "layer_gradient_norms": norms.astype(np.float32),
        "learning_rates": np.full((count, 1), 0.01),
        "training_mode": np.ones(count, dtype=np.int8),
        "passes": np.ones(count, dtype=np.int64),
        "gradients_zeroed": np.ones(count, dtype=np.int8),
        "losses": losses,
        "sampled_steps": np.array([0, 2, 4]),
        "update_ratios": np.array([[1e-3, np.nan, 1e-2]] * 3, dtype=np.float32),
        "evaluation_steps": np.array([3]),
        "evaluation_losses": np.array([1.5]),
    }
    return recorded(**(plain | known))


FRAMES = (
    FrameFacts("embed", "Linear", "float16", ValueRange(0.1, 0.5), ValueRange(0.0, 1.0), ValueRange(0.2, 3e4)),
    FrameFacts("head", "Linear", "float16", None, ValueRange(0.2, 3e4), ValueRange(0.0, 6e4, nan=2, inf=3)),
)
ORIGIN = OriginFacts(5, "forward", True, 5, module="head", module_kind="Linear", frames=FRAMES)
RANGES = RangeFacts(
    modules=("embed", "head"),
    dtypes=("float16", "float32"),
    limits=np.array([65504.0, 3.4e38]),
    highest=np.array([32752.0, 2.0]),
    highest_steps=np.array([4, 2]),
    steps=np.array([0, 2, 4]),
)
ERROR = Finding(
    "non-finite-activations",
    "error",
    "numerics",
    "In step 5, head <script>alert(1)</script> made NaN.\nmodule  a & b\nhead    1 < 2",
    fix="x = x / (norm + 1e-6)  # not <b>0</b>",
    evidence={"module": "head", "frames": ["one", "two <i>"], "learning_rate": 0.01},
    where=Where("train.py", 31, "main"),
    step=5,
)
NOTE = Finding("mostly-padding", "note", "data", "61% is padding.", "pad less")
WATCHED = Report(
    "watched 6 steps of Net<T>",
    (NOTE, ERROR),
    (StageResult("loss", "passed", "2 to 1"), StageResult("updates", "not judged", "why <not>")),
    {"overfitting": "needs an evaluation loss & more"},
    faults=("watching the gradients ended: ValueError: <oops>",),
    history=history(),
    origin=ORIGIN,
    ranges=RANGES,
)
CRASHED = Report(
    "explained an exception",
    crash=CrashFacts("IndexError", "Target <2> is out", (Line("train.py", 3, "main", "x < y", True),), True),
)
PAGES = {"watched": WATCHED, "crashed": CRASHED, "empty": Report("examined"), "found": Report("examined", (NOTE,))}


@pytest.mark.parametrize("report", PAGES.values(), ids=PAGES)
class TestEveryPage:
    def test_is_well_formed(self, report):
        assert Page(page(report)).tags[0] == ("html", {"lang": "en"})

    def test_fetches_nothing_and_runs_nothing(self, report):
        text = page(report)
        for tag, attributes in Page(text).tags:
            assert tag not in ("script", "link", "iframe", "img", "object", "embed", "base")
            assert not FETCHING & attributes.keys()
            assert not [name for name in attributes if name.startswith("on")]
        assert not re.search(r"url\(|@import|https?:|//[a-z]", text)

    def test_has_one_title_and_headings_in_order(self, report):
        tags = [tag for tag, _ in Page(page(report)).tags]
        assert (tags.count("h1"), tags.count("main")) == (1, 1)
        assert tags.index("h1") < min((tags.index(t) for t in ("h2", "h3") if t in tags), default=10**6)

    def test_labels_its_pictures_and_its_columns(self, report):
        tags = Page(page(report)).tags
        for tag, attributes in tags:
            if tag == "svg":
                assert attributes.get("aria-hidden") == "true" or attributes["aria-label"]
            if tag == "th":
                assert attributes["scope"] in ("row", "col")
            if attributes.get("class") == "scroll":  # can be scrolled with the keyboard
                assert attributes["tabindex"] == "0"
                assert attributes["aria-label"]


class TestPage:
    def test_shows_the_findings_the_worst_first_with_all_that_they_say(self):
        text = Page(page(WATCHED)).words
        assert text.index("non-finite-activations") < text.index("mostly-padding")
        assert "1 error, 1 note." in text
        assert "In step 5, head <script>alert(1)</script> made NaN." in text
        assert "x = x / (norm + 1e-6) # not <b>0</b>" in text
        assert "step 5, train.py:31 in main" in text
        assert "learning_rate 0.01" in text

    def test_lists_under_a_cause_what_follows_from_it_and_says_what_is_ignored(self):
        following = Finding("loss-plateau", "warning", "optimizer", "It stays at 1.1.\nAnd more.", "wait", step=40)
        cause = Finding(
            "dead-units", "warning", "model", "All are zero.", "revive them", consequences=(following,)
        )
        report = Report("ran train.py", (dataclasses.replace(cause, other_trainings=3),))
        report = dataclasses.replace(
            report, ignored={"overfitting": "tiny data"}, ignored_in_vain=("no-gradient",)
        )
        words = Page(page(report)).words
        assert "Also caused loss-plateau (step 40) It stays at 1.1. The same in 3 other trainings" in words
        assert "Ignored overfitting (tiny data) no-gradient: unused ignore" in words

    def test_escapes_what_comes_from_the_user(self):
        raw = page(WATCHED)
        for harmful in ("<script", "Net<T>", "<b>0", "<i>", "<oops>", "why <not>", "body.<b>"):
            # Tags of the page's own with these names carry a class.
            assert harmful not in raw.replace('<i class="', "").replace("<b>Loss", "").replace("<b>G", "")
        assert "Net&lt;T&gt;" in raw

    def test_quotes_from_the_page_of_a_rule_why_it_is_bad(self):
        raw = page(WATCHED)
        assert raw.count("<summary>Why it is bad</summary>") == 2
        unknown = dataclasses.replace(NOTE, rule="a-rule-of-my-own")
        assert "Why it is bad" not in page(Report("examined", (unknown,)))

    def test_of_every_rule_of_the_library_is_well_formed(self):
        each = tuple(dataclasses.replace(NOTE, rule=rule.name) for rule in all_rules())
        raw = page(Report("examined", each))
        assert raw.count("<summary>Why it is bad</summary>") == len(each)
        assert "`" not in Page(raw).words
        assert "<code>backward()</code> adds to the gradients that are already there." in raw

    def test_lays_the_lines_of_a_message_out_as_they_are(self):
        assert '<pre tabindex="0">module  a &amp; b\nhead    1 &lt; 2</pre>' in page(WATCHED)

    def test_says_what_was_looked_at_what_could_not_be_judged_and_what_failed(self):
        text = Page(page(WATCHED)).words
        assert "loss 2 to 1" in text
        assert "overfitting needs an evaluation loss & more" in text
        assert "1 rule lacked evidence; this is not the same as clean" in text
        assert "watching the gradients ended: ValueError: <oops>" in text

    def test_shows_the_module_calls_up_to_the_nan(self):
        text = Page(page(WATCHED)).words
        assert "embed Linear float16 0.1 to 0.5 0 to 1 0.2 to 3e+04" in text
        assert "head Linear float16 - 0.2 to 3e+04 0 to 6e+04, 2 NaN, 3 inf" in text
        assert page(WATCHED).count('<tr class="origin">') == 1

    def test_holds_the_activations_against_the_limit_of_their_dtype(self):
        text = Page(page(WATCHED)).words
        assert "embed float16 3.28e+04 4 50% of 65,504" in text
        assert "head float32 2 2 less than 1% of 3.4e+38" in text
        # log10(32752) is 4.515, on a scale from -4 to log10(65504), which is 4.816
        assert '<i class="near" style="width:96.6%"></i>' in page(WATCHED)

    def test_tells_infinite_activations_from_large_ones(self):
        broken = dataclasses.replace(RANGES, highest=np.array([np.inf, np.nan]))
        text = Page(page(dataclasses.replace(WATCHED, ranges=broken))).words
        assert "embed float16 never finite infinite in step 4" in text
        assert "head float32 never finite NaN in step 2" in text

    def test_of_activations_past_the_limit_shows_how_near_they_had_come(self):
        near = dataclasses.replace(
            RANGES,
            highest=np.array([np.inf, np.nan]),
            nearest=np.array([65472.0, np.nan]),
            nearest_steps=np.array([2, -1]),
            finite=np.array([np.nan, 3.5]),
            finite_steps=np.array([-1, 0]),
        )
        text = Page(page(dataclasses.replace(WATCHED, ranges=near))).words
        assert "embed float16 6.55e+04 2 100% of 65,504 infinite in step 4" in text
        assert "head float32 3.5 0 less than 1% of 3.4e+38 NaN in step 2" in text

    def test_shows_the_steps_that_were_traced(self):
        text = Page(page(dataclasses.replace(WATCHED, traces=(TraceFacts(3, FRAMES),)))).words
        assert "Step 3: 2 module calls, in the order of completion" in text
        assert text.count("embed Linear float16 0.1 to 0.5 0 to 1 0.2 to 3e+04") == 2

    @pytest.mark.parametrize(
        ("batch", "said"),
        [
            (
                FailedBatch(5, 255, 32, rows=(3, 4)),
                "The batch of step 5 (32 examples; fingerprint 255; affected: 3, 4) is kept as long "
                "as the watch is: report.batch().save('batch.pt').",
            ),
            (FailedBatch(5, None, 0, why_not="<it>"), "The batch of step 5 was not kept: <it>."),
        ],
        ids=["kept", "not kept"],
    )
    def test_says_whether_the_batch_that_broke_is_at_hand(self, batch, said):
        assert said in Page(page(dataclasses.replace(WATCHED, failed=batch))).words

    def test_of_a_crash_shows_its_lines(self):
        text = Page(page(CRASHED)).words
        assert "IndexError: Target <2> is out" in text
        assert "train.py:3 main x < y" in text
        assert "No rule recognises this failure." in text

    def test_of_a_run_that_kept_no_step_has_no_charts(self):
        empty = TrainingHistory(StepHistory(0, *[np.zeros(0)] * 7))
        assert "Course of the run" not in page(Report("watched", history=empty))

    def test_shows_the_memory_where_that_is_what_was_found(self):
        held = history(memory_bytes=np.array([1.0, 2.0, 3.0]) * 2**20, memory_of="process")
        growing = dataclasses.replace(NOTE, rule="growing-memory", stage="memory")
        assert "Memory of the process, in MiB" in page(Report("watched", (growing,), history=held))
        assert "Memory of" not in page(Report("watched", (NOTE,), history=held))

    def test_of_one_step_is_drawn(self):
        one = history(1, sampled_steps=np.array([0]), update_ratios=np.ones((1, 3), dtype=np.float32))
        assert "Course of the run" in page(Report("watched", history=one))

    def test_of_a_long_deep_run_stays_small_and_says_how_it_was_thinned(self):
        steps, layers = 2000, 200
        norms = np.random.default_rng(0).lognormal(0, 2, (steps, layers)).astype(np.float32)
        long = history(
            total_steps=10 * steps,
            steps=np.arange(steps) * 10,
            layers=tuple(f"layers.{n}" for n in range(layers)),
            layer_gradient_norms=norms,
            gradient_norms=norms.max(axis=1),
            gradient_known=np.ones(steps, dtype=np.bool_),
            learning_rates=np.full((steps, 1), 0.01),
            losses=None,
            loss_known=None,
            sampled_steps=np.arange(steps) * 10,
            update_ratios=norms,
        )
        text = page(Report("watched", history=long))
        assert len(text) < 1_000_000
        words = Page(text).words
        assert "Of the 20,000 steps, 2,000 were kept" in words
        assert "each column is up to 167 steps and shows the largest norm in them" in words
        assert "each row is up to 4 neighbouring layers, the largest of them" in words
        assert "layers.0 to layers.3" in words


class TestSave:
    def test_writes_one_file(self, tmp_path):
        assert WATCHED.save(tmp_path / "report.html") == tmp_path / "report.html"
        assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
        assert (tmp_path / "report.html").read_text(encoding="utf-8") == page(WATCHED) + "\n"
