"""How `show_batch` reads a batch of arrays and shows it, without a framework."""

import random
import re
import struct
import zlib

import numpy as np
import pytest

import diagnostics
from diagnostics.errors import InvalidInput
from diagnostics.report.batch import mosaic, sparkline
from diagnostics.report.png import png

RNG = np.random.default_rng(0)
LABELS = np.array([3, 1, 1, 0])


def image(*shape: int) -> np.ndarray:
    return RNG.random(shape, np.float32)


def only_input(batch):
    (part,) = diagnostics.show_batch(batch).views[0].inputs
    return part


def only_target(batch):
    (part,) = diagnostics.show_batch(batch).views[0].targets
    return part


class TestKinds:
    @pytest.mark.parametrize(
        ("batch", "kind", "read_as"),
        [
            (image(4, 3, 32, 40), "images", "4 images, 3 x 32 x 40, channels first"),
            (image(4, 32, 40, 3), "images", "4 images, 32 x 40 x 3, channels last"),
            (image(4, 28, 28), "images", "4 images, 28 x 28"),
            (image(4, 12, 16, 16), "images", "4 images, 12 x 16 x 16, channels first"),
            (image(4, 50, 3), "series", "4 series, 50 x 3 (steps x features)"),
            (image(4, 3, 50), "series", "4 series, 3 x 50 (features x steps)"),
            (image(4, 7), "table", "a table, 4 rows x 7 features"),
            (image(4, 1), "numbers", "4 numbers"),
            (RNG.integers(0, 99, (4, 20)), "tokens", "token ids, 4 x 20"),
            (image(4, 2, 2, 2, 2), "other", "an array of shape 4 x 2 x 2 x 2 x 2"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_of_inputs_follow_from_dtype_and_shape(self, batch, kind, read_as):
        part = only_input(batch)
        assert (part.kind, part.read_as) == (kind, read_as)

    @pytest.mark.parametrize(
        ("target", "kind"),
        [
            (LABELS, "classes"),
            (np.eye(4, dtype=np.float32)[LABELS], "classes"),
            (np.array([[0.0], [1.0], [1.0], [0.0]]), "classes"),
            (np.array([0.3, 1.7, -2.0, 4.0]), "numbers"),
            (RNG.integers(0, 5, (4, 16, 16)), "masks"),
            (image(4, 9), "table"),
        ],
        ids=["ids", "one-hot", "of one unit", "regression", "segmentation", "several numbers"],
    )
    def test_of_targets(self, target, kind):
        assert only_target((image(4, 3, 16, 16), target)).kind == kind

    def test_texts_are_shown_as_they_are(self):
        part = only_input({"text": ["good\nfilm", "bad film"], "label": [1, 0]})
        assert (part.kind, part.texts) == ("texts", ("good\nfilm", "bad film"))

    def test_classes_are_counted_in_the_whole_batch(self):
        part = only_target((image(300, 3, 16, 16), np.repeat([2, 0, 1], 100)))
        assert part.counts == ((2, 100), (0, 100), (1, 100))
        assert len(part.values) == 8


class TestImages:
    def test_from_0_to_1_and_bytes_are_shown_as_they_are(self):
        pixels = RNG.integers(0, 256, (2, 3, 16, 16), np.uint8)
        for batch in (pixels, pixels.astype(np.float32) / 255, pixels.astype(np.float32)):
            part = only_input(batch)
            assert np.array_equal(part.values, np.moveaxis(pixels, 1, 3))
            assert part.notes == ()

    def test_another_range_is_stretched_and_said(self):
        part = only_input(np.linspace(-2, 3, 2 * 3 * 16 * 16, dtype=np.float32).reshape(2, 3, 16, 16))
        assert (part.low, part.high) == (-2, 3)
        assert (part.values.min(), part.values.max()) == (0, 255)
        assert any("no normalisation is known" in note for note in part.notes)

    def test_large_ones_are_downsampled_and_it_is_said(self):
        part = only_input(image(2, 3, 200, 150))
        assert part.values.shape == (2, 50, 38, 3)
        assert "downsampled to 50 x 38" in part.notes

    def test_numbers_that_are_not_finite_are_counted(self):
        batch = image(2, 3, 16, 16)
        batch[0, 0, 0, :3] = np.nan
        assert "3 of 1,536 numbers are not finite" in only_input(batch).notes


class TestText:
    BATCH = ({"image": image(4, 3, 16, 16), "age": image(4)}, LABELS)

    def test_says_what_each_part_was_read_as(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        text = str(diagnostics.show_batch(self.BATCH, rows=2))
        assert text.startswith("a batch: 4 rows, 2 shown\n\ninput image: read as 4 images, 3 x 16 x 16")
        assert "target: read as class ids of 4 rows, int64, 3 different: 1 x2, 3 x1, 0 x1" in text
        assert "rows 1 to 2: 3, 1" in text
        (written,) = tmp_path.iterdir()
        assert f"The images: {written}" in " ".join(text.split())

    def test_writes_the_images_once(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        picture = diagnostics.show_batch(self.BATCH)
        assert str(picture) == str(picture)
        assert len(list(tmp_path.iterdir())) == 1

    @pytest.mark.parametrize("width", [40, 60, 80, 120])
    def test_is_no_wider_than_it_may_be(self, width):
        batch = {"series": image(4, 500, 3), "table": image(4, 40), "y": RNG.random(4)}
        text = diagnostics.show_batch(batch).to_text(width)
        assert max(map(len, text.splitlines())) <= width

    def test_control_characters_of_texts_are_not_printed(self):
        assert "\x1b" not in str(diagnostics.show_batch({"text": ["\x1b[31mred", "blue"]}))

    def test_a_sparkline_leaves_out_what_is_not_finite(self):
        assert sparkline(np.array([0.0, np.nan, 1.0]), 0.0, 1.0) == "▁ █"


class TestHtml:
    def test_holds_each_image_with_its_label_and_no_script(self):
        html = diagnostics.show_batch((image(4, 3, 16, 16), LABELS)).to_html()
        assert html.count('<img alt="row ') == 4
        assert re.findall(r"<small>(\d)</small>", html) == ["3", "1", "1", "0"]
        assert "<script" not in html

    def test_escapes_texts(self):
        html = diagnostics.show_batch({"text": ["<b>bold</b>", "plain"]}).to_html()
        assert "&lt;b&gt;bold" in html

    def test_is_bounded_for_noise_in_large_images(self):
        batch = (image(64, 3, 256, 256), RNG.integers(0, 5, (64, 256, 256)))
        assert len(diagnostics.show_batch(batch).to_html()) < 250_000


class TestSave:
    def test_replaces_no_file(self, tmp_path):
        (tmp_path / "a.html").write_text("mine")
        with pytest.raises(InvalidInput, match="exists"):
            diagnostics.show_batch(image(4, 7)).save(tmp_path / "a.html")
        assert (tmp_path / "a.html").read_text() == "mine"

    def test_writes_a_page_a_text_or_a_png(self, tmp_path):
        picture = diagnostics.show_batch(image(4, 3, 16, 16))
        assert picture.save(tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")
        assert picture.save(tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
        assert picture.save(tmp_path / "a.txt").read_text().startswith("a batch: 4 rows")

    def test_needs_images_for_a_png_and_a_known_ending(self, tmp_path):
        for name, why in (("a.png", "no images"), ("a.pdf", "must end in")):
            with pytest.raises(InvalidInput, match=why):
                diagnostics.show_batch(image(4, 7)).save(tmp_path / name)
        assert list(tmp_path.iterdir()) == []

    def test_a_png_holds_the_pixels(self):
        pixels = RNG.integers(0, 256, (5, 7, 3), np.uint8)
        data = png(pixels)
        assert struct.unpack(">2I", data[16:24]) == (7, 5)
        at = data.index(b"IDAT")
        (length,) = struct.unpack(">I", data[at - 4 : at])
        rows = np.frombuffer(zlib.decompress(data[at + 4 : at + 4 + length]), np.uint8).reshape(5, 22)
        assert np.array_equal(rows[:, 1:].reshape(5, 7, 3), pixels)

    def test_masks_are_below_the_images(self):
        view = diagnostics.show_batch((image(4, 3, 16, 16), RNG.integers(0, 5, (4, 16, 16)))).views[0]
        assert mosaic(view).shape == (2 * 96 + 4, 4 * 96 + 3 * 4, 3)


class TestArguments:
    def test_batches_of_a_list_are_read_and_states_kept(self):
        class Batches:
            def __iter__(self):
                yield np.random.rand(4, 7), random.random()

        before = random.getstate(), np.random.get_state()[1].tolist()
        diagnostics.show_batch(Batches())
        assert before == (random.getstate(), np.random.get_state()[1].tolist())

    @pytest.mark.parametrize(
        ("source", "options", "why"),
        [
            (None, {}, "was given None"),
            ("rows.csv", {}, "was given a str"),
            (iter([LABELS]), {}, "take that away from training"),
            ([], {}, "empty"),
            (LABELS, {"rows": 0}, "at least 1"),
            (LABELS, {"tokenizer": 3}, "no decode"),
        ],
    )
    def test_that_are_wrong_are_named(self, source, options, why):
        with pytest.raises(InvalidInput, match=why):
            diagnostics.show_batch(source, **options)
