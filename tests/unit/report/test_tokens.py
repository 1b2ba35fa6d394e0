"""How `show_tokens` reads a batch and shows it, without a framework."""

import itertools

import pytest
from rich.cells import cell_len
from rich.console import Console

import diagnostics
from diagnostics.errors import InvalidInput

WORDS = ["<pad>", "<s>", "</s>", "<mask>", " Ask", ":", " 2", "+", " 3", " five", ".", "\n", " 数字", "\x1b[31m"]
PAD, START, END, MASK, ASK, COLON, TWO, PLUS, THREE, FIVE, STOP, LINE, WIDE, EVIL = range(len(WORDS))


class Tokenizer:
    pad_token_id, bos_token_id, eos_token_id, mask_token_id = PAD, START, END, MASK
    all_special_ids = (PAD, START, END, MASK)

    def decode(self, ids):
        return "".join(WORDS[id] for id in ids)

    def convert_ids_to_tokens(self, id):
        return WORDS[id]


class EndPads(Tokenizer):
    pad_token_id = END


ROW = [START, ASK, COLON, TWO, PLUS, THREE, LINE, FIVE, STOP, END]
ANSWER = [-100] * 7 + [FIVE, STOP, END]


def show(batch, tokenizer=None, **options):
    return diagnostics.show_tokens(batch, tokenizer=tokenizer or Tokenizer(), **options)


def states(shown, row=0):
    return [token.state for token in shown.facts.rows[row].tokens]


class TestText:
    def test_underlines_what_is_trained_and_counts(self):
        shown = show(
            {
                "input_ids": [[*ROW, PAD, PAD, PAD, PAD]],
                "attention_mask": [[1] * 10 + [0] * 4],
                "labels": [ANSWER + [-100] * 4],
            }
        )
        assert str(shown).splitlines() == [
            "tokens of a batch",
            "",
            "row 1: 3 trained, 7 ignored, 4 padding; <s> start, </s> end",
            "  0 │<s>│ Ask│:│ 2│+│ 3│⏎│ five│.│</s>│<pad> x4│",
            "                          ━━━━━ ━ ━━━━ ········",
            "",
            "1 row: 10 tokens, 3 trained (30%), 7 ignored, 4 padding; end tokens: 1 in the input, 1 trained;",
            "start tokens per row: 1.",
            "━ trained, no line: ignored, · padding. Each labelled token is predicted from the tokens before it:",
            "the model shifts the labels by one, so the label at a place is its own token.",
        ]

    @pytest.mark.parametrize("width", [40, 60, 80, 120])
    def test_fits_any_width(self, width):
        batch = {"input_ids": [ROW * 6 + [WIDE] * 40], "labels": [ROW * 6 + [WIDE] * 40]}
        lines = show(batch).to_text(width).splitlines()
        assert max(map(cell_len, lines)) <= width
        above = next(line for line in lines if "│" in line)
        assert cell_len(above) > width - 12
        for upper, lower in itertools.pairwise(lines):
            if "━" in lower and "│" in upper:
                assert cell_len(lower) < cell_len(upper)

    def test_a_terminal_gets_its_own_width_and_colours(self):
        console = Console(width=60, force_terminal=True, color_system="standard", record=True)
        with console.capture() as said:
            console.print(show({"input_ids": [ROW], "labels": [ANSWER]}))
        assert "\x1b[1;34m five" in said.get()

    def test_a_long_row_leaves_out_the_middle_of_a_stretch(self):
        shown = show({"input_ids": [[START, *[TWO] * 2_000, END]], "labels": [[-100] * 2_001 + [END]]})
        assert "… 1,960 more …" in str(shown)
        assert len(str(shown)) < 2_000

    def test_control_characters_are_shown(self):
        shown = show({"input_ids": [[START, EVIL]]})
        assert "\x1b" not in str(shown) + shown.to_html()
        assert "\\x1b[31m" in str(shown)

    def test_html_holds_each_token_and_its_state(self):
        html = show({"input_ids": [ROW], "labels": [ANSWER]})._repr_html_()
        assert "&lt;/s&gt;" in html
        assert html.count('trained"') == 3


class TestStates:
    def test_the_first_token_is_never_trained_by_a_model_that_shifts(self):
        assert states(show({"input_ids": [ROW], "labels": [ROW]})) == ["ignored", *["trained"] * 9]

    def test_an_end_token_that_pads_and_is_ignored(self):
        batch = {
            "input_ids": [[*ROW, END, END]],
            "attention_mask": [[1] * 10 + [0] * 2],
            "labels": [[*ROW[:-1], -100, -100, -100]],
        }
        shown = show(batch, EndPads())
        assert (shown.ends, shown.padding) == ((1, 0), 2)
        assert "end tokens: 1 in the input, 0 trained" in shown.counts()

    def test_without_a_mask_the_first_end_token_after_the_text_is_its_end(self):
        shown = show({"input_ids": [[*ROW, END, END]]}, EndPads())
        assert (shown.ends[0], shown.padding) == (1, 2)

    def test_padding_that_has_a_label_is_trained(self):
        batch = {"input_ids": [[*ROW, PAD]], "attention_mask": [[1] * 10 + [0]], "labels": [[*ROW, PAD]]}
        assert states(show(batch))[-1] == "trained"

    def test_labels_shifted_by_hand_are_shown_and_their_ends_counted(self):
        shown = show({"input_ids": [ROW[:-1]], "labels": [ROW[1:]]})
        assert shown.facts.labels == "shifted by hand"
        assert "│<s>→ Ask│ Ask→:│" in str(shown)
        assert shown.ends == (0, 1)
        assert "a causal model of transformers shifts labels= once more" in shown.to_text(400)

    def test_doubled_start_tokens_are_counted(self):
        shown = show({"input_ids": [[START, *ROW], [*ROW, PAD]]})
        assert shown.starts == (2, 1)
        assert "start tokens per row: 1 to 2" in shown.counts()

    def test_positions_that_restart_are_segments(self):
        shown = show({"input_ids": [ROW + ROW], "labels": [ROW + ROW], "position_ids": [[*range(10), *range(10)]]})
        assert shown.facts.rows[0].segments == 2
        assert "    segment 2\n  0 │<s>" in str(shown)

    def test_positions_of_left_padding_are_no_segments(self):
        mask, positions = [[0, 0] + [1] * 10], [[1, 1, *range(10)]]
        shown = show({"input_ids": [[PAD, PAD, *ROW]], "attention_mask": mask, "position_ids": positions})
        assert shown.facts.rows[0].segments == 1

    def test_tokens_to_fill_in(self):
        batch = {"input_ids": [[START, MASK, COLON]], "labels": [[-100, ASK, -100]]}
        assert "<mask>→ Ask" in str(show(batch))

    def test_classes_of_tokens(self):
        shown = show({"input_ids": [ROW], "labels": [[-100, 4, 0, 0, 0, 0, 0, 1, 0, -100]]})
        assert shown.facts.labels == "in place"
        assert "│ Ask→4│:→0│" in str(shown)

    def test_one_label_for_each_row(self):
        shown = show({"input_ids": [ROW, ROW], "labels": [1, 0]})
        assert "row 2: 10 tokens; label 0" in str(shown)
        assert "trained" not in shown.counts()

    def test_labels_of_a_decoder_are_rows_of_their_own(self):
        shown = show({"input_ids": [ROW], "labels": [[FIVE, END, -100]]})
        assert "row 1, labels of the decoder: 2 trained, 1 ignored" in str(shown)

    def test_completions_of_a_preference_loss_are_trained(self):
        shown = show({"input_ids": [ROW, ROW], "completion_mask": [[0] * 7 + [1] * 3] * 2})
        assert states(shown, row=1) == ["ignored"] * 7 + ["trained"] * 3

    def test_without_a_tokenizer_ids_are_shown(self):
        assert "│1│4│5│" in str(diagnostics.show_tokens({"input_ids": [ROW]}))

    def test_one_row_is_enough(self):
        assert states(show({"input_ids": ROW, "labels": ANSWER})) == ["ignored"] * 7 + ["trained"] * 3


class TestWrongInput:
    @pytest.mark.parametrize(
        ("batch", "words"),
        [
            ({"inputs": [ROW]}, "without input_ids"),
            ({"input_ids": [["a"]]}, "whole numbers of shape"),
            ({"input_ids": [ROW], "attention_mask": [[1]]}, "attention_mask"),
            ({"input_ids": [ROW], "labels": [ANSWER, ANSWER]}, "1 rows of input_ids and 2 of labels"),
            ({"input_ids": [ROW, ROW], "labels": [1, 2, 3]}, "each row has its label"),
            (None, "given None"),
            ("text", "given a str"),
        ],
    )
    def test_says_what_was_expected(self, batch, words):
        with pytest.raises(InvalidInput, match=words):
            show(batch)

    @pytest.mark.parametrize("examples", [0, True, 1.5])
    def test_examples_is_a_count(self, examples):
        with pytest.raises(InvalidInput, match="at least 1"):
            show({"input_ids": [ROW]}, examples=examples)

    def test_a_tokenizer_can_decode(self):
        with pytest.raises(InvalidInput, match=r"no decode\(\)"):
            show({"input_ids": [ROW]}, tokenizer="gpt2")
