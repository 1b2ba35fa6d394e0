"""Scalers fitted on both sides, and targets of other rows than their inputs."""

import pytest

from tests.support.sources import names_and_lines


def refitted(source):
    return names_and_lines("refitted_scalers", source)


def cut(source):
    return names_and_lines("cut_targets", source)


class TestRefittedScalers:
    def test_one_scaler_twice(self):
        source = """
            scaler = StandardScaler()
            X_train = scaler.fit_transform(X_train)
            X_test = scaler.fit_transform(X_test)
        """
        assert refitted(source) == [("StandardScaler", "X_train", "X_test", 4)]

    def test_parts_of_one_series(self):
        source = """
            scaler = MinMaxScaler()
            train = scaler.fit_transform(series[:900])
            test = scaler.fit_transform(series[900:])
        """
        assert refitted(source) == [("MinMaxScaler", "series[:900]", "series[900:]", 4)]

    def test_two_encoders(self):
        source = """
            train["city"] = LabelEncoder().fit_transform(train["city"])
            test["city"] = LabelEncoder().fit_transform(test["city"])
        """
        assert refitted(source) == [("LabelEncoder", "train['city']", "test['city']", 3)]

    def test_a_data_set_that_scales_what_it_is_given(self):
        source = """
            class Table(Dataset):
                def __init__(self, frame):
                    x = frame.values
                    self.x = MinMaxScaler().fit_transform(x)
            train, valid = Table(train_df), Table(valid_df)
        """
        assert refitted(source) == [("MinMaxScaler", "train_df", "valid_df", 5)]

    @pytest.mark.parametrize(
        "source",
        [
            "s = StandardScaler()\nX_train = s.fit_transform(X_train)\nX_test = s.transform(X_test)",
            "sx, sy = StandardScaler(), StandardScaler()\nsx.fit_transform(X_train)\nsy.fit_transform(y_train)",
            "X = StandardScaler().fit_transform(X)\nX_train, X_test = train_test_split(X)",
            "z = PCA(2).fit_transform(z_train)\nz = PCA(2).fit_transform(z_test)",
            "z = TSNE().fit_transform(test_features)",
            "for train_idx, test_idx in kfold.split(X):\n    s = StandardScaler()\n"
            "    a = s.fit_transform(X[train_idx])\n    b = s.transform(X[test_idx])",
            "def load(frame, s=None):\n    if s is None:\n        s = StandardScaler()\n"
            "        return s.fit_transform(frame)\n    return s.transform(frame)\nload(train); load(test, s)",
        ],
    )
    def test_silent(self, source):
        assert not refitted(source)


class TestCutTargets:
    @pytest.mark.parametrize(
        ("source", "found"),
        [
            (
                "keep = (np.abs(X) < 3).all(axis=1)\nX = X[keep]\ny = y[:len(X)]",
                ("X", "y", "y = y[:len(X)]", 3),
            ),
            (
                "df = df.dropna()\ntarget = target.iloc[:df.shape[0]]",
                ("df", "target", "target = target.iloc[:df.shape[0]]", 2),
            ),
            (
                "texts, labels = [], []\ntexts, labels = load()\ntexts = [t for t in texts if len(t) > 3]\n"
                "ReviewDataset(texts, labels)",
                ("texts", "labels", "ReviewDataset(texts, labels)", 4),
            ),
        ],
    )
    def test_names_them(self, source, found):
        assert cut(source) == [found]

    @pytest.mark.parametrize(
        "source",
        [
            "X, y = X[keep], y[keep]",
            "keep = X > 0\nX = X[keep]\ny = y[keep]\ny = y[:len(X)]",
            "X = X[:500]\ny = y[:len(X)]",
            "X = X[order]\ny = y[:len(X)]",
            "texts, labels = load()\ntexts = [clean(t) for t in texts]\nrows = zip(texts, labels)",
            "texts, labels = load()\ntexts = [t for t in texts if t]\nlabels = tag(texts)\nzip(texts, labels)",
            "texts, labels = load()\nlabels = [n for t, n in zip(texts, labels) if t]\n"
            "texts = [t for t in texts if t]\nzip(texts, labels)",
            "names = [n for n in names if n]\nrows = zip(names, colours)",
        ],
    )
    def test_silent(self, source):
        assert not cut(source)
