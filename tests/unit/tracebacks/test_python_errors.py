"""What is said of Python's own exceptions, from their message and the line that raised them."""

import pytest

from diagnostics.api.explain import explain
from diagnostics.collectors.tracebacks.python_errors import proved
from diagnostics.facts.crash import CrashFacts, FrameFacts


def said(name, message, code=None, file="train.py"):
    frames = () if code is None else (FrameFacts(file, 8, "main", code, yours=file == "train.py"),)
    return proved(CrashFacts(name, message, frames, live=False))


NONE = "'NoneType' object has no attribute '{}'"


@pytest.mark.parametrize(
    ("name", "message", "code", "begins"),
    [
        (
            "AttributeError",
            NONE.format("take"),
            "x = valid.take(10)",
            "valid is None: what made it returned nothing",
        ),
        ("AttributeError", NONE.format("append"), "self.a.b[0].append(x)", "self.a.b[0] is None: what made it"),
        ("AttributeError", NONE.format("take"), None, "The object whose take is asked for is None"),
        ("AttributeError", NONE.format("group"), "m.group(1)", "m is None: the pattern was found nowhere"),
        ("TypeError", "'NoneType' object is not subscriptable", "boxes[0]", "boxes is None"),
        ("TypeError", "'NoneType' object is not callable", "self.fn(x)", "self.fn is None"),
        ("TypeError", "cannot unpack non-iterable NoneType object", "a, b = f()", "The value is None"),
        (
            "KeyError",
            "'d5'",
            "i = self.class_to_ind[name]",
            "self.class_to_ind has no 'd5': the data contains the",
        ),
        ("KeyError", "'a/1.png'", "self.ids[path]", "The key is the name of a file: self.ids was made from names"),
        ("KeyError", "'\N{FULLWIDTH COLON}", "index = self.dict[char]", "self.dict has no character"),
        ("IndexError", "tuple index out of range", None, "A tuple has fewer parts than that. Of x.shape[i]"),
        (
            "TypeError",
            "training_step_end() missing 1 required positional argument: 'batch_idx'",
            None,
            "training_step_end() is called by the library, and not by a line of yours",
        ),
        (
            "AttributeError",
            "'module' object has no attribute 'scalar_summary'",
            None,
            "A module was imported, and has no scalar_summary",
        ),
        ("TypeError", "got an unexpected keyword argument 'depth'", None, "The class that is made there takes no"),
        ("KeyError", "7", "table[label]", "table has no entry 7. A dict has keys, not positions"),
        ("KeyError", "'model'", "net.load_state_dict(checkpoint['model'])", "checkpoint has no part 'model'"),
        ("KeyError", "'mask'", "batch['mask'].to(d)", "batch has no 'mask': print its keys. What made it names"),
        ("KeyError", "'RANK'", "os.environ['RANK']", "The environment variable RANK is not set"),
        ("KeyError", "'\\ufefflabel'", "row['label']", "The key begins with a byte order mark"),
        (
            "ValueError",
            "not enough values to unpack (expected 2, got 0)",
            "a, b = zip(*rows)",
            "The right side is empty",
        ),
        (
            "AttributeError",
            "'Tensor' object has no attribute 'backwards'",
            "loss.backwards()",
            "backwards is misspelt",
        ),
        ("IndexError", "list index out of range", "sys.argv[1]", "The script was called with fewer arguments"),
        ("IndexError", "list index out of range", "line.split(' ')[3]", "A line or name has fewer parts"),
        ("IndexError", "list index out of range", "files[0]", "files has fewer entries than that, perhaps none"),
        ("IndexError", "list index out of range", "os.path.split(paths[0])[1]", "paths has fewer entries"),
        ("IndexError", "list index out of range", "x = names[i].split('.')[0]", "names has fewer entries"),
        ("IndexError", "list index out of range", "if rows[i]['text']:", "rows has fewer entries"),
        ("ZeroDivisionError", "division by zero", "total / len(loader)", "len(loader) is 0: most often nothing"),
        (
            "UnboundLocalError",
            "local variable 'loss' referenced before assignment",
            "x",
            "loss gets its value in a",
        ),
        (
            "UnboundLocalError",
            "cannot access local variable 'loss' where it is not associated with a value",
            "x",
            "loss gets its value in a part that did not run",
        ),
        (
            "TypeError",
            "'<' not supported between instances of 'float' and 'NoneType'",
            "if loss < best:",
            "best is None, and None cannot be compared",
        ),
        ("NameError", "name 'xrange' is not defined", "xrange(3)", "xrange is of Python 2; Python 3 has range."),
        ("NameError", "name 'np' is not defined", "np.zeros(1)", "The import is missing, or its notebook cell"),
        ("NameError", "name 'lodaer' is not defined", "lodaer", "lodaer had no value when the line ran"),
        (
            "AssertionError",
            "",
            "assert len(a) == len(b)",
            "The condition does not hold: len(a) == len(b). a and b",
        ),
        (
            "TypeError",
            "'module' object is not callable",
            "tqdm(x)",
            "A module is called in place of what it holds",
        ),
        ("TypeError", "'list' object is not callable", "sizes(0)", "sizes is a list and is called with brackets"),
        (
            "TypeError",
            "f() got an unexpected keyword argument 'k'",
            "f(k=1)",
            "f() takes no argument k. If it is a",
        ),
        ("TypeError", "string indices must be integers", "row['text']", "What is indexed by a name is no dict"),
        (
            "TypeError",
            "'<' not supported between instances of 'str' and 'int'",
            "a < b",
            "A str is compared with a",
        ),
        (
            "TypeError",
            "Object of type float32 is not JSON serializable",
            "json.dump(x, f)",
            "A value of type float32 is written",
        ),
        ("ValueError", "could not convert string to float: 'abc'", "float(x)", "A column of numbers holds a text"),
        (
            "FileNotFoundError",
            "[Errno 2] No such file or directory: 'data/a.csv'",
            "open(p)",
            "'data/a.csv' is looked",
        ),
        ("ModuleNotFoundError", "No module named 'cv2'", "import cv2", "python -m pip install opencv-python"),
    ],
)
def test_the_line_tells_which_value_it_is(name, message, code, begins):
    assert (said(name, message, code) or "").startswith(begins)


@pytest.mark.parametrize(
    ("message", "code", "begins"),
    [
        (
            "too many values to unpack (expected 4)",
            "b, c, h, w = x.shape",
            "x has another number of axes than the line has names (expected 4)",
        ),
        (
            "not enough values to unpack (expected 3, got 2)",
            "n, c, t = self.x.size()",
            "self.x has another number of axes than the line has names (expected 3, got 2)",
        ),
        (
            "too many values to unpack (expected 4)",
            "state, reward, done, info = env.step(action)",
            "The environment gave another number of values than the line has names (expected 4): since Gym 0.26",
        ),
        (
            "not enough values to unpack (expected 3, got 2)",
            "for x, y, z in loader:",
            "loader yields another number of values at a time than the loop has names (expected 3, got 2)",
        ),
        (
            "too many values to unpack (expected 2)",
            "scores, _ = pack_padded_sequence(scores, lengths, batch_first=True)",
            "A PackedSequence has four fields since PyTorch 1.1",
        ),
        (
            "not enough values to unpack (expected 3, got 2)",
            "_, found, _ = cv2.findContours(mask, 0, 2)",
            "cv2.findContours returns two values in OpenCV 2 and 4",
        ),
        (
            "too many values to unpack (expected 2)",
            "a, b = f(x)",
            "The right side gives another number of values than",
        ),
    ],
)
def test_what_was_unpacked_is_told_by_the_line(message, code, begins):
    assert (said("ValueError", message, code) or "").startswith(begins)


def test_a_column_that_pandas_does_not_have():
    told = said("KeyError", "'label'", "raise KeyError(key) from err", "pandas/core/indexes/base.py")
    assert (told or "").startswith("The DataFrame has no column or row 'label'")


@pytest.mark.parametrize("message", ["Target 7", "a b c", "('a', 1)"])
def test_other_keys_prove_nothing(message):
    assert said("KeyError", message, "f(x)") is None


def test_a_line_of_any_length_takes_no_time():
    assert said("AttributeError", NONE.format("take"), "a." * 100_000) is not None
    assert said("KeyError", "'" + "a" * 100_000 + "'", "x[" * 100_000) is None


def test_a_report_says_what_the_line_proves():
    text = (
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    x = maps[name]\nKeyError: 'cat'\n"
    )
    report = explain(text)
    assert report.findings == ()
    assert report.crash.nature.endswith("at a.py:3 in f. maps has no 'cat': print its keys.")


def test_an_error_that_a_worker_could_not_hand_on_is_no_check_of_pytorch():
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    for batch in loader:\n'
        '  File "/opt/lib/python3.11/site-packages/torch/_utils.py", line 9, in reraise\n'
        "    raise self.exc_type(msg)\n"
        "TypeError: __init__() missing 1 required positional argument: 'code'\n"
    )
    assert explain(text).crash.nature.startswith("A worker or replica raised an error of its own")


def test_arguments_that_are_left_out_are_named():
    told = said(
        "TypeError", "train() missing 2 required positional arguments: 'loader' and 'state'", "train(1, 50)"
    )
    assert told.startswith("train() needs 'loader' and 'state', which the call leaves out")
    one = said("TypeError", "__init__() missing 1 required positional argument: 'size'")
    assert one.startswith("The class that is made there needs 'size', which the call leaves out")


@pytest.mark.parametrize("owner", ["tuple", "list"])
def test_parts_by_place_where_a_dict_was_expected(owner):
    told = said("AttributeError", f"'{owner}' object has no attribute 'values'", "features = list(x.values())")
    assert told.startswith(f"A {owner} was passed where a dict was expected")


@pytest.mark.parametrize(
    ("module", "package"),
    [("datasets", "datasets"), ("hydra", "hydra-core"), ("faiss", "faiss-cpu"), ("PIL.Image", "pillow")],
)
def test_a_module_of_another_s_package_has_its_package(module, package):
    assert said("ModuleNotFoundError", f"No module named '{module}'").endswith(f"pip install {package}")


def test_a_module_of_ones_own_is_looked_for_in_the_project():
    assert said("ModuleNotFoundError", "No module named 'teapots'").startswith(
        "find . -name teapots.py in the project"
    )


def test_a_none_that_is_looked_for_is_no_row_of_the_data():
    told = said("ValueError", "None is not in list", "i = ids.index(tokenizer.cls_token_id)")
    assert told.startswith("What is looked for is None: a token that the tokenizer does not have")


def test_a_list_inside_a_library_is_no_folder_of_the_users():
    def of_timm(code):
        return said("IndexError", "list index out of range", code, "timm/data/loader.py")

    assert of_timm("first = files[0]").startswith("timm itself takes a part that is not there")
    assert of_timm("name = line.split(',')[3]").startswith("A line or name has fewer parts")


class TestMembers:
    ENUM = FrameFacts("/usr/lib/python3.10/enum.py", 437, "__getattr__", "raise AttributeError(name)", yours=False)

    def told(self, code, last=ENUM):
        line = FrameFacts("train.py", 12, "main", code, yours=True)
        return proved(CrashFacts("AttributeError", "PIECEWISE", (line, last), live=False))

    def test_the_line_names_the_enumeration(self):
        assert self.told("if name == Schedule.PIECEWISE:").startswith("Schedule has no member PIECEWISE")

    def test_without_a_line_the_enumeration_is_not_named(self):
        assert self.told(None).startswith("The enumeration that the line names has no member PIECEWISE")

    def test_a_word_of_another_file_is_no_member(self):
        own = FrameFacts("settings.py", 3, "__getattr__", "raise AttributeError(name)", yours=True)
        assert self.told("if name == Schedule.PIECEWISE:", own) is None
