"""What is taken out of a text before it is published, and what must stay for it to mean something."""

import socket

import pytest

from diagnostics.report.redaction import Redaction


class TestCode:
    @pytest.mark.parametrize(
        ("text", "redacted"),
        [
            ("could not read /home/anna/study/train.csv", "could not read train.csv"),
            ("pd.read_csv('~/study/train.csv')", "pd.read_csv('train.csv')"),
            (r"open('C:\Users\Anna\train.csv')", "open('train.csv')"),
            (
                'File "/opt/env/lib/python3.11/site-packages/torch/nn/modules/linear.py"',
                'File "torch/nn/modules/linear.py"',
            ),
            ("login(token='hf_aBcDeFgHiJkL')", "login(token='[secret]')"),
            ("https://anna:pw@example.org/data", "https://[secret]@example.org/data"),
            ("https://example.org/data?key=1234", "https://example.org/data?[query]"),
            ("ask anna.m@example.org", "ask [mail]"),
            ("connect() to 10.0.4.17:29500 failed", "connect() to [address]:29500 failed"),
        ],
    )
    def test_private_parts_are_taken_out(self, text, redacted):
        assert Redaction().code(text) == redacted

    @pytest.mark.parametrize(
        "text",
        [
            "loss = criterion(logits / 2, labels) // 4",
            "F.cross_entropy(a/b, y)  # and/or",
            "print('a row of two words')",
            "read the page https://example.org/guide/start",
            "version 2.13.0 of cuDNN 9.1.0",
            "model.layers.0.self_attn.q_proj.weight",
        ],
    )
    def test_code_and_names_stay(self, text):
        redaction = Redaction()
        assert redaction.code(text) == text
        assert redaction.taken == ""

    @pytest.mark.parametrize("host", ["gpu-17.cluster.example.org", "node1.lab.example.com:29500"])
    def test_other_hosts_of_a_network_are_taken_out(self, host):
        assert host.partition(":")[0] not in Redaction().code(f"connecting to {host} failed")

    @pytest.mark.parametrize("code", ["self.policy.net(x)", "x[self.layer.io]", "see https://docs.my-site.org/a"])
    def test_attributes_and_public_addresses_are_no_hosts(self, code):
        assert Redaction().code(code) == code

    def test_the_host_is_taken_out(self, monkeypatch):
        monkeypatch.setattr(socket, "gethostname", lambda: "gpu-box-7")
        assert Redaction().code("rank 1 on gpu-box-7 failed, gpu-box-70 did not") == (
            "rank 1 on [host] failed, gpu-box-70 did not"
        )


class TestProse:
    def test_quoted_texts_of_several_words_and_long_arrays_are_taken_out(self):
        numbers = "tensor([0.1234, 0.5678, 0.9123, 0.4567, 0.8912, 0.3456, 0.7891, 0.2345])"
        assert Redaction().prose(f"row 3: 'the patient has a fever' gives {numbers}") == (
            "row 3: '[23 characters]' gives tensor([numbers])"
        )

    @pytest.mark.parametrize(
        "text",
        [
            "'NoneType' object has no attribute 'shape'",
            "mat1 and mat2 shapes cannot be multiplied (32x784 and 512x10)",
            "the Trainer's own collator, and the model's forward()",
            "size mismatch for fc.weight: torch.Size([10, 512]) from checkpoint",
        ],
    )
    def test_names_and_shapes_stay(self, text):
        assert Redaction().prose(text) == text


class TestFile:
    def test_a_relative_path_stays(self):
        assert Redaction().file("src/train.py") == "src/train.py"

    def test_an_absolute_one_is_shortened(self):
        assert Redaction().file("/home/anna/study/train.py") == "train.py"


class TestTaken:
    def test_counts_what_was_taken(self):
        redaction = Redaction()
        redaction.prose("'one two' and 'three four' of /home/anna/x")
        assert redaction.taken == "1 path, 2 texts in quotes"

    def test_nothing_is_changed_on_request(self):
        redaction = Redaction(keeps_all=True)
        text = "'one two' in /home/anna/x on 10.0.0.1"
        assert (redaction.prose(text), redaction.code(text), redaction.file("/home/a")) == (text, text, "/home/a")
        assert redaction.taken == ""
