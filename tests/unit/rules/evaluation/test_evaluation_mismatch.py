import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.calls import ObjectLedger
from diagnostics.facts.data import NO_TOKEN, RefittedEncoder, ScaledRows, ScalerFits, TokenSides, row_numbers
from diagnostics.facts.dependence import DependenceFacts, ShiftedPositions
from diagnostics.facts.inputs import CutGenerations, InputFacts, InputSample, PromptEnds, TargetSides
from diagnostics.facts.where import Where
from diagnostics.facts.written import WrittenPatterns
from diagnostics.rules.evaluation.evaluation_mismatch import EvaluationMismatch
from tests.support.sources import written

RULE = EvaluationMismatch()
RNG = np.random.default_rng(0)
MEANS, SCALES = np.linspace(-40, 60, 8).reshape(8, 1), np.geomspace(0.2, 900, 8).reshape(8, 1)


def table(rows=128, channels=8, batch=32):
    values = RNG.normal(size=(rows, channels, 1)).astype(np.float32)
    return [values[start : start + batch] for start in range(0, rows, batch)]


def pixels(rows=128, bias=0):
    values = RNG.integers(0, 256 - bias, (rows, 3, 64)) + bias
    values[0, :, :2] = [0, 255]
    return [values[start : start + 32] for start in range(0, rows, 32)]


def judge(training, evaluation, size=None, image=False, rounds=3, **known):
    def sample(batches):
        return InputSample(
            tuple(np.asarray(batch, np.float32) for batch in batches),
            size or batches[0].shape[1] * batches[0].shape[2],
            positional=image,
            **known,
        )

    return RULE.from_inputs(InputFacts({"0": sample(training)}, {"0": sample(evaluation)}, rounds))


class TestFires:
    def test_on_bytes_against_pixels_from_0_to_1(self):
        finding = judge([batch / 255 for batch in pixels()], pixels(), image=True)
        assert (finding.rule, finding.severity, finding.stage) == ("evaluation-mismatch", "warning", "evaluation")

    def test_on_a_forgotten_normalize(self):
        training = [(batch / 255 - 0.45) / 0.225 for batch in pixels()]
        assert judge(training, [batch / 255 for batch in pixels()], image=True).severity == "warning"

    def test_on_pixels_that_are_no_bytes_and_fill_another_range(self):
        training = [2 * RNG.random((32, 1, 64)) - 1 for _ in range(4)]
        evaluation = [RNG.random((32, 1, 64)) for _ in range(3)]
        assert judge(training, evaluation, image=True).severity == "warning"

    def test_on_columns_standardised_for_training_only(self):
        finding = judge(table(), [MEANS + SCALES * batch for batch in table()])
        assert finding.evidence["cause"] == "standardised"

    def test_on_raw_columns_of_other_rows(self):
        units = np.array([0.002, 0.005, 0.01, 0.02, 10, 50, 200, 900]).reshape(8, 1)
        finding = judge(table(), [units * (3 + np.exp(batch)) for batch in table()], rounds=1)
        assert finding.evidence["cause"] == "standardised"

    def test_on_columns_standardised_for_evaluation_only(self):
        assert judge([MEANS + SCALES * batch for batch in table()], table(), rounds=2).severity == "warning"

    def test_on_another_scale(self):
        finding = judge([0.1 * batch + 3 for batch in table()], [700 + 20 * batch for batch in table()])
        assert finding.evidence["cause"] == "scale"

    def test_on_means_far_away(self):
        finding = judge([5 + 2 * batch for batch in table()], [25 + 2 * batch for batch in table()])
        assert finding.evidence["cause"] == "mean"

    def test_beside_an_evaluation_of_the_training_rows(self):
        training = [batch / 255 for batch in pixels()]
        assert judge(training, [*training, *pixels()], image=True) is not None

    def test_on_a_raw_table_beside_an_evaluation_of_the_training_rows(self):
        training = [5 + 2 * batch for batch in table()]
        assert judge(training, [training[2][::-1], *(25 + 2 * batch for batch in table())]) is not None

    def test_on_single_rows(self):
        singles = [batch[row : row + 1] * 50 for batch in table() for row in range(32)]
        assert judge([batch * 0.5 for batch in table()], singles) is not None


def patients(rows=400, batch=50):
    """Columns of different kinds: (age, score, exponential, level, share, visits)."""
    columns = np.stack(
        [
            RNG.normal(0.2, 1, rows),
            RNG.gamma(2, 1, rows),
            RNG.exponential(2, rows),
            RNG.normal(3, 0.5, rows),
            (RNG.random(rows) < 0.3).astype(float),
            RNG.poisson(4, rows),
        ],
        axis=1,
    )
    return [columns[start : start + batch, :, None] for start in range(0, rows, batch)]


def photographs(rows=200, tint=(0.6, 0.45, 0.25)):
    """Pictures of one tint, some of them brighter than others."""
    values = np.asarray(tint)[:, None] + 0.2 * RNG.normal(size=(rows, 1, 1)) + 0.1 * RNG.normal(size=(rows, 3, 64))
    return [values[start : start + 32] for start in range(0, rows, 32)]


class TestAnotherOrder:
    def test_of_the_columns_of_a_table(self):
        order = [2, 5, 0, 4, 1, 3]
        finding = judge(patients(), [batch[:, order] for batch in patients(200)], size=6)
        assert (finding.severity, finding.evidence["cause"]) == ("warning", "order")

    def test_of_two_columns(self):
        assert (
            judge(patients(), [batch[:, [3, 1, 2, 0, 4, 5]] for batch in patients(300)], size=6).severity
            == "warning"
        )

    def test_of_colours(self):
        evaluation = [batch[:, ::-1] for batch in photographs()]
        assert judge(photographs(), evaluation, size=768, image=True).severity == "warning"

    @pytest.mark.parametrize(
        "evaluation",
        [
            patients(200),
            [batch[:, [0, 1, 2, 3, 4, 5]] + 0.5 for batch in patients(200)],
            [batch[:, [2, 5, 0, 4, 1, 3]] * 1.3 for batch in patients(200)],
            [batch[:, [2, 5, 0, 4, 1, 3]] for batch in patients(200)][:2] + patients(200)[:2],
        ],
        ids=["the same", "moved", "another order and another scale", "some of the batches"],
    )
    def test_silent_on_columns_that_agree_in_no_order(self, evaluation):
        found = judge(patients(), evaluation, size=6)
        assert found is None or found.evidence["cause"] != "order"

    def test_silent_on_columns_of_one_distribution(self):
        assert judge(table(), [batch[:, ::-1] for batch in table()]) is None

    @pytest.mark.parametrize("tint", [(0.6, 0.45, 0.25), (0.4, 0.45, 0.45), (0.25, 0.4, 0.6)])
    def test_silent_on_photographs_from_elsewhere(self, tint):
        assert judge(photographs(), photographs(tint=tint), size=768, image=True) is None


class TestSilent:
    @pytest.mark.parametrize(
        "change",
        [
            lambda batch: batch,
            lambda batch: 1.6 * batch,
            lambda batch: batch + 1.5,
            lambda batch: np.where(np.arange(8).reshape(8, 1) < 5, 30 * batch, batch),
            lambda batch: np.where(np.arange(8).reshape(8, 1) < 5, 30 * np.exp(batch), batch + 6),
        ],
        ids=["alike", "noisier", "moved", "some columns", "some columns, and of other rows"],
    )
    def test_on_another_domain(self, change):
        assert judge(table(), [change(batch) for batch in table()]) is None

    def test_on_one_class_at_a_time(self):
        centres = 4 * RNG.normal(size=(4, 8, 1))
        training = [centres[RNG.integers(0, 4, 32)] + 0.2 * batch for batch in table()]
        assert judge(training, [centres[k] + 0.2 * batch for k, batch in enumerate(table())]) is None
        assert judge(training, [centres[2] + 0.2 * batch for batch in table()]) is None

    def test_on_anomalies_among_normal_rows(self):
        mixed = [np.where(np.arange(32).reshape(32, 1, 1) < 8, 12 * batch, batch) for batch in table()]
        assert judge(table(), mixed) is None

    def test_on_a_series_that_drifts(self):
        later = np.linspace(6, 14, 96).reshape(96, 1, 1) + RNG.normal(size=(96, 8, 1))
        assert judge(table(), [later[:32], later[32:64], later[64:]]) is None

    def test_on_a_trial_with_random_numbers(self):
        dummy = RNG.normal(size=(32, 3, 64))
        training = [batch / 255 for batch in pixels()]
        assert judge(training, [dummy, dummy], image=True, rounds=1) is None

    def test_on_a_coordinate_tried_outside_of_its_range(self):
        training = [RNG.random((32, 1, 1)) for _ in range(4)]
        assert judge(training, [50 * RNG.random((32, 1, 1)) for _ in range(4)]) is None

    def test_if_other_rows_of_the_training_set_are_evaluated_too(self):
        training, others = ([5 + 2 * batch for batch in table()] for _ in range(2))
        assert judge(training, [*others, *(25 + 2 * batch for batch in table())]) is None

    def test_if_the_training_rows_alone_are_evaluated(self):
        training = table()
        assert judge(training, training) is None

    def test_on_noise_of_many_scales(self):
        noisy = [batch * scale for scale, batch in zip((80, 20, 5, 1), table(), strict=True)]
        assert judge(table(), noisy) is None


@pytest.mark.parametrize(
    ("training", "evaluation", "known"),
    [
        (table(16), table(64), {}),
        (table(64), [table(64)[0][:10]], {}),
        (table(64), [100 * batch for batch in table(64)], {"integers": True}),
        (table(64), [100 * batch for batch in table(64, 5)], {}),
    ],
    ids=["few training rows", "few evaluation rows", "ids", "other columns"],
)
def test_not_applicable_without_its_evidence(training, evaluation, known):
    with pytest.raises(NotApplicable):
        judge(training, evaluation, **known)


def prices(deviation=1.0, mean=0.0, rows=200, seed=0):
    return np.random.default_rng(seed).normal(mean, deviation, (rows, 1))


def rows_like(shift=0.0):
    rows = np.random.default_rng(3).normal(size=(64, 8, 1)).astype(np.float32)
    return InputFacts({"0": InputSample((rows,), 8)}, {"0": InputSample((rows[::-1] + shift,), 8)}, 5)


class TestTargets:
    def test_fires_on_prices_standardised_for_training_only(self):
        finding = RULE.from_targets(TargetSides(prices(), prices(4.0, 20.0, seed=1), rows_like()))
        assert (finding.rule, finding.severity) == ("evaluation-mismatch", "warning")

    @pytest.mark.parametrize(
        "sides",
        [
            TargetSides(prices(), prices(1.3, 0.4, seed=1), rows_like()),
            TargetSides(prices(), prices(4.0, 20.0, seed=1)),
            TargetSides(prices(), prices(4.0, 20.0, seed=1), rows_like(shift=3.0)),
            TargetSides(prices(), np.exp(prices(2.0, seed=1)), rows_like()),
        ],
        ids=["alike", "inputs not known", "other inputs", "another distribution"],
    )
    def test_silent_where_the_rows_may_be_others(self, sides):
        assert RULE.from_targets(sides) is None

    def test_needs_numbers(self):
        grades = np.arange(200.0).reshape(-1, 1) % 5
        with pytest.raises(NotApplicable):
            RULE.from_targets(TargetSides(grades, grades * 7))


def test_fires_on_a_scaler_fitted_on_both_sides():
    refitted = written("refitted_scalers", "StandardScaler", "X_train", "X_test")
    finding = RULE.from_source(refitted)
    assert finding.severity == "warning"
    assert RULE.from_source(WrittenPatterns()) is None


def test_an_encoder_fitted_again_gives_the_same_numbers_if_no_category_is_missing():
    codes = written("refitted_scalers", "LabelEncoder", "y_train", "y_test")
    finding = RULE.from_source(codes)
    assert finding.severity == "note"


class TestGenerationsThatAreCutOff:
    def judge(self, rows=120, cut=100, limit=20, targets=(30, 26, 18, 31)):
        return RULE.from_generations(CutGenerations(rows, cut, limit, np.array(targets)))

    def test_warns_if_targets_are_longer_than_the_default(self):
        finding = self.judge()
        assert finding.severity == "warning"
        assert (finding.evidence["longer"], finding.evidence["longest"], finding.evidence["cut"]) == (3, 31, 100)

    def test_notes_a_preview_of_a_few_texts(self):
        assert self.judge(rows=4, cut=4).severity == "note"

    def test_silent_if_the_targets_are_short_enough(self):
        assert self.judge(targets=(20, 18, 20, 7)) is None

    def test_silent_if_the_texts_end_by_themselves(self):
        assert self.judge(cut=10) is None


class TestEndsOfPrompts:
    """A chat: 1 and 2 begin the turns of user and assistant, 3 ends a turn, questions are of tokens from 10 on."""

    WORDS = {1: "<user>", 2: "<assistant>", 3: "<end>"}

    @staticmethod
    def asked(*end, rows=12, first=10):
        """Return prompts with three words of a question, and these tokens behind."""
        words = np.random.default_rng(0).integers(first, first + 6, (rows, 3))
        return np.concatenate([np.full((rows, 2), (-1, 1)), words, np.tile(end, (rows, 1))], axis=1)

    def judge(self, trained, generated, continued=None, words=WORDS):
        written = (
            np.full((len(generated), 4), 12) if continued is None else np.tile(continued, (len(generated), 1))
        )
        ends = PromptEnds(trained, generated, written, np.full(len(trained), 14), words)
        return RULE.from_prompts(ends)

    def test_warns_where_the_turn_of_the_assistant_is_not_begun(self):
        finding = self.judge(self.asked(3, 2), self.asked(3))
        assert (finding.severity, finding.evidence["missing"], finding.evidence["before"]) == (
            "warning",
            [2],
            [3, 2],
        )

    def test_warns_where_nothing_is_left_of_what_separates_question_and_answer(self):
        rows = self.asked(2)
        finding = self.judge(rows, rows[:, :-1], words={})
        assert (finding.evidence["missing"], finding.evidence["recognised"]) == ([2], 12)

    @pytest.mark.parametrize(
        "generated",
        [(3, 2), (3, 2, 14), (3, 2, 14, 3, 1, 11, 3)],
        ids=["as in training", "with the beginning of an answer", "several turns"],
    )
    def test_silent_if_the_prompts_have_the_tokens(self, generated):
        assert self.judge(self.asked(3, 2), self.asked(*generated)) is None

    def test_warns_of_a_second_start_and_an_end(self):
        prompts = np.insert(self.asked(2, 3), 1, 1, axis=1)
        finding = self.judge(self.asked(2), prompts)
        assert (finding.severity, finding.evidence["doubled_start"], finding.evidence["behind"]) == (
            "warning",
            1,
            [3],
        )

    def test_warns_of_a_second_start_alone(self):
        prompts = np.insert(self.asked(2), 1, 1, axis=1)
        assert self.judge(self.asked(2), prompts).evidence["behind"] == []

    def test_notes_a_token_that_begins_no_answer(self):
        finding = self.judge(self.asked(2), self.asked(2, 40))
        assert (finding.severity, finding.evidence["behind"]) == ("note", [40])

    def test_silent_on_second_starts_in_training_too(self):
        doubled = np.insert(self.asked(2), 1, 1, axis=1)
        assert self.judge(doubled, doubled) is None

    @pytest.mark.parametrize("end", [(2, 14, 3), (2, 40, 41, 42)], ids=["begun as in training", "begun at length"])
    def test_silent_on_answers_that_the_script_begins(self, end):
        assert self.judge(self.asked(2), self.asked(*end)) is None

    def test_silent_on_an_end_of_some_prompts(self):
        mixed = np.concatenate([self.asked(2, 3)[:, 1:], self.asked(2)])
        assert self.judge(self.asked(2), mixed) is None

    def test_silent_on_one_prompt_given_several_times(self):
        assert self.judge(self.asked(2), np.repeat(self.asked(2, 3, rows=1), 12, axis=0)) is None

    def test_silent_if_some_prompts_have_the_tokens(self):
        mixed = np.concatenate([self.asked(11, 3), self.asked(3, 2)])
        assert self.judge(self.asked(3, 2), mixed) is None

    def test_silent_if_the_model_writes_the_tokens_itself(self):
        assert self.judge(self.asked(3, 2), self.asked(3), continued=(2, 12, 13, 3)) is None

    def test_silent_on_texts_of_another_kind(self):
        assert self.judge(self.asked(2), self.asked(first=40)) is None

    def test_needs_the_same_tokens_before_each_answer(self):
        with pytest.raises(NotApplicable):
            self.judge(self.asked(), self.asked(3))

    @pytest.mark.parametrize(("answers", "prompts"), [(7, 12), (12, 3)])
    def test_needs_several_answers_and_prompts(self, answers, prompts):
        with pytest.raises(NotApplicable):
            self.judge(self.asked(3, 2, rows=answers), self.asked(3, rows=prompts))


def token_sides(training, held, are_cut=True, name="0"):
    return TokenSides({name: (np.asarray(training), np.asarray(held))}, len(training), len(held), are_cut)


def words(first, rows, seed=0):
    """Return rows of 8 tokens: 4 of any text, 4 of the 20 that begin with `first`, padding at the end."""
    rng = np.random.default_rng(seed)
    common, own = rng.integers(2, 12, (rows, 4)), rng.integers(first, first + 20, (rows, 4))
    return np.concatenate([common, own, np.zeros((rows, 3), int)], axis=1)


class TestTokens:
    SOURCES = np.concatenate([words(first, 100) for first in (20, 40, 60)])

    def test_fires_on_a_source_that_is_held_out(self):
        finding = RULE.from_tokens(token_sides(self.SOURCES, words(80, 100)))
        assert (finding.severity, finding.evidence["cause"]) == ("warning", "tokens")
        assert finding.evidence["unseen_share"] == 0.5
        assert finding.evidence["unseen_tokens"] == 20

    def test_fires_on_users_that_are_held_out(self):
        users = np.repeat(np.arange(150), 20)[:, None]
        finding = RULE.from_tokens(token_sides(users[:2400], users[2400:], name="user"))
        assert (finding.evidence["input"], finding.evidence["unseen_share"]) == ("user", 1.0)

    def test_is_a_note_where_the_rows_may_be_another_data_set(self):
        assert RULE.from_tokens(token_sides(self.SOURCES, words(80, 100), are_cut=False)).severity == "note"

    def test_counts_no_rows_that_end_early(self):
        short = np.where(self.SOURCES == 0, NO_TOKEN, self.SOURCES)
        held = np.where(words(80, 100) == 0, NO_TOKEN, words(80, 100))
        assert RULE.from_tokens(token_sides(short, held)).evidence["unseen_share"] == 0.5

    @pytest.mark.parametrize(
        "held",
        [
            words(60, 100, seed=1),
            np.where(words(60, 100) > 75, words(60, 100) + 20, words(60, 100)),
            np.where(words(60, 100) == 0, 99, words(60, 100)),
        ],
        ids=["the same source", "a few new tokens", "padded with another token"],
    )
    def test_silent(self, held):
        assert RULE.from_tokens(token_sides(self.SOURCES, held)) is None

    def test_silent_on_ids_that_are_always_new(self):
        assert RULE.from_tokens(token_sides(np.arange(400)[:, None], np.arange(400, 560)[:, None])) is None

    def test_silent_on_rare_words(self):
        rare = np.random.default_rng(0).zipf(1.3, (400, 12)) % 100_000
        assert RULE.from_tokens(token_sides(rare[:300], rare[300:])) is None

    def test_needs_rows(self):
        with pytest.raises(NotApplicable):
            RULE.from_tokens(token_sides(self.SOURCES, words(80, 20)))


class TestPositions:
    def judge(self, changed, with_positions=0, reader="GPT2Model"):
        shifted = ShiftedPositions("0", 16, changed, 5, reader, with_positions)
        return RULE.from_positions(DependenceFacts(trained=True, shifted=shifted))

    def test_fires_where_counted_positions_change_nothing(self):
        finding = self.judge(12)
        assert (finding.severity, finding.evidence["cause"]) == ("warning", "positions")

    def test_fires_on_a_model_that_takes_no_positions(self):
        assert self.judge(9, None, None).severity == "warning"

    @pytest.mark.parametrize(
        ("changed", "with_positions"), [(0, None), (3, 0), (12, 9)], ids=["none", "few", "another cause"]
    )
    def test_silent(self, changed, with_positions):
        assert self.judge(changed, with_positions) is None

    def test_needs_such_an_evaluation(self):
        with pytest.raises(NotApplicable):
            RULE.from_positions(DependenceFacts(trained=True))


class TestRefittedEncoder:
    @staticmethod
    def judge(shared, moved):
        refitted = RefittedEncoder(
            "LabelEncoder", "user", (200, 150), shared, moved, Where("t.py", 34, "main"), Where("t.py", 38, "main")
        )
        return RULE.from_encoder(refitted)

    def test_warns_where_most_values_get_another_code(self):
        finding = self.judge(150, 145)
        assert (finding.severity, finding.evidence["moved"], finding.where.line) == ("warning", 145, 38)

    @pytest.mark.parametrize(("shared", "moved"), [(150, 30), (7, 7), (0, 0)])
    def test_is_silent_where_few_do(self, shared, moved):
        assert self.judge(shared, moved) is None


class TestScalers:
    RAW = np.random.default_rng(0).normal(5, 3, size=(400, 4))

    def scaled(self, raw, line):
        mean, deviation = raw.mean(axis=0), raw.std(axis=0)
        rows = ((raw - mean) / deviation).astype(np.float32)
        where = Where("t.py", line, "main")
        return rows, ScaledRows("StandardScaler", 1 / deviation, -mean / deviation, row_numbers(rows), where)

    def judge(self, training, evaluation, *fits):
        sides = [
            {"0": InputSample(tuple(rows[:, :, None] for rows in np.array_split(one, 4)), 4)}
            for one in (training, evaluation)
        ]
        return RULE.from_scalers(ScalerFits(fits), InputFacts(*sides, 3))

    @pytest.mark.parametrize(("shift", "severity"), [(2.0, "warning"), (0.0, "note")])
    def test_fires_on_evaluation_rows_of_another_fit(self, shift, severity):
        (training, first), (test, second) = self.scaled(self.RAW[:300], 7), self.scaled(self.RAW[300:] + shift, 9)
        finding = self.judge(training, test, first, second)
        assert (finding.severity, finding.where.line, finding.evidence["cause"]) == (severity, 9, "refitted")
        assert "on line 7" in finding.message

    def test_stays_silent_if_one_fit_made_both(self):
        rows, first = self.scaled(self.RAW, 7)
        assert self.judge(rows[:300], rows[300:], first, self.scaled(self.RAW + 2, 9)[1]) is None

    def test_stays_silent_if_rows_of_both_fits_are_trained(self):
        (ours, first), (theirs, second) = self.scaled(self.RAW[:200], 7), self.scaled(self.RAW[200:] + 2, 9)
        assert self.judge(np.concatenate([ours, theirs]), theirs, first, second) is None

    def test_stays_silent_if_the_evaluation_rows_are_not_scaled_rows(self):
        (training, first), (_, second) = self.scaled(self.RAW[:300], 7), self.scaled(self.RAW[300:] + 2, 9)
        assert self.judge(training, np.tanh(training[:64]), first, second) is None


class TestSinglePositions:
    def test_warns_of_a_layer_that_never_gets_its_state(self):
        ledger = ObjectLedger("Writer", recurrent="rnn (LSTM)", lone_positions=300, trained_length=64)
        finding = RULE.from_single_positions(ledger)
        assert (finding.severity, finding.evidence["cause"]) == ("warning", "dropped state")
        assert "300 times" in finding.message

    def test_needs_such_calls(self):
        with pytest.raises(NotApplicable):
            RULE.from_single_positions(ObjectLedger("Writer"))
