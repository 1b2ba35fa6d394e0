"""Which lines may have launched what failed."""

import linecache
import textwrap

import pytest

from diagnostics.collectors.crash.cuda import MOST_LINES, candidates
from diagnostics.facts.crash import FrameFacts


@pytest.fixture
def source(tmp_path):
    """Write a script, and return the frame of its line that ends in `# here`."""

    def write(text, function="<module>", name="train.py"):
        file = tmp_path / name
        file.write_text(textwrap.dedent(text))
        linecache.clearcache()
        lines = file.read_text().splitlines()
        line = next(number for number, code in enumerate(lines, 1) if code.endswith("# here"))
        return FrameFacts(str(file), line, function, lines[line - 1].strip(), yours=True)

    return write


def code(frames):
    return [frame.code.removesuffix("  # here") for frame in frames]


class TestCandidates:
    def test_begin_with_the_training_step_and_end_with_the_line_that_waited(self, source):
        frame = source("""
            model = build()
            for epoch in range(3):
                evaluate(model)
                for batch in loader:
                    batch = {name: value.to(device) for name, value in batch.items()}
                    optimizer.zero_grad()
                    loss = model(**batch).loss
                    loss.backward()
                    print(f"{loss.item():.3f}")  # here
                    optimizer.step()
            """)
        assert code(candidates([frame])) == ["loss = model(**batch).loss", "loss.backward()"]

    def test_go_on_in_the_caller_until_its_loop(self, source):
        outer = source(
            """
            set_up()
            for batch in loader:
                images = augment(batch)
                step(images)  # here
            """
        )
        inner = source(
            """
            def step(images):
                score = images @ weights
                return score.item()  # here
            """,
            function="step",
            name="steps.py",
        )
        assert code(candidates([outer, inner])) == [
            "images = augment(batch)",
            "step(images)",
            "score = images @ weights",
        ]

    def test_hold_what_stands_in_blocks(self, source):
        frame = source("""
            def step(batch):
                with autocast("cuda"):
                    if use_mixup(batch):
                        batch = mixup(batch)
                    loss = loss_fn(batch)
                try:
                    loss.backward()
                finally:
                    check(loss)
                loss.item()  # here
            """)
        assert code(candidates([frame])) == [
            "if use_mixup(batch):",
            "batch = mixup(batch)",
            "loss = loss_fn(batch)",
            "loss.backward()",
            "check(loss)",
        ]

    def test_leave_out_functions_that_are_only_defined(self, source):
        frame = source("""
            def unused():
                launch()
            y = model(x)
            y.item()  # here
            """)
        assert code(candidates([frame])) == ["y = model(x)"]

    def test_are_the_latest_of_many(self, source):
        calls = "\n".join(f"x = f{number}(x)" for number in range(30))
        found = code(candidates([source(f"{calls}\nx.item()  # here\n")]))
        assert found == [f"x = f{number}(x)" for number in range(30 - MOST_LINES, 30)]

    def test_are_none_where_the_source_is_gone_or_another(self, source):
        frame = source("y = model(x)\ny.item()  # here\n")
        assert candidates([FrameFacts(frame.file, frame.line, "<module>", "z.item()", yours=True)]) == ()
        assert candidates([FrameFacts("gone.py", 3, "<module>", "y.item()", yours=True)]) == ()
        assert candidates([FrameFacts(frame.file, frame.line, "<module>", frame.code, yours=False)]) == ()

    def test_are_none_in_a_notebooks_cell_with_commands_of_its_own(self, source):
        assert candidates([source("%matplotlib inline\ny = model(x)\ny.item()  # here\n")]) == ()
