"""Files that lie: refused in one sentence, before anything large is read, and no code is run."""

import io
import json
import pickle
import re
import struct
import zipfile

import numpy as np
import pytest

import biclique
from biclique.exceptions import DataError
from biclique.models.archive import FORMAT, _signed
from tests.fuzz.seeds_of_models import archive, saved


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.biclique"


def refused(path, content, message):
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        biclique.load(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert said.isprintable()
    assert said.endswith(".")
    return said


def text_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as whole:
        return json.loads(whole.read("model.json"))


def with_text(change):
    """The second model, its JSON changed and signed."""
    text = text_of(saved()[1])
    change(text)
    return archive({"model.json": json.dumps(text).encode()})


def zipped(members, compression=zipfile.ZIP_STORED, comment=b""):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as out:
        for name, content in members:
            out.writestr(name, content)
        out.comment = comment
    return made.getvalue()


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as whole:
        return [(name, whole.read(name)) for name in whole.namelist()], whole.comment


def test_a_newer_file_is_refused_with_the_way_out(path):
    def newer(text):
        text["format"], text["made_by"]["biclique"] = FORMAT + 1, "9.1"

    said = refused(path, with_text(newer), r"has format 2, written by biclique 9\.1, and this version reads formats up")
    assert "pip install --upgrade biclique" in said


def test_what_is_no_model(path, tmp_path):
    for content in (b"", b"id,x\n1,2\n", b"PK\x03\x04", zipped([])):
        refused(path, content, "no model of biclique|has no member 'model.json'")
    refused(path, saved()[0][100:], "it was damaged")  # the end alone
    with pytest.raises(DataError, match="no such file"):
        biclique.load(tmp_path / "nothing")
    with pytest.raises(DataError, match="is a folder"):
        biclique.load(tmp_path)


@pytest.mark.parametrize(
    "name", ["../evil.npy", "/etc/passwd", "arrays/../../x.npy", "arrays/01.npy", "code.py", "a\n"]
)
def test_members_of_other_names_are_refused(path, name):
    members, comment = members_of(saved()[0])
    refused(path, zipped([*members, (name, b"x")], comment=comment), "has a member .*, which no model has")


def test_members_that_are_missing_or_too_many(path):
    members, comment = members_of(saved()[0])
    fewer = [one for one in members if one[0] != "arrays/1.npy"]
    refused(path, zipped(fewer, comment=comment), "its members are not those that model.json declares")
    refused(path, zipped([*members, ("arrays/999.npy", b"x")], comment=comment), "its members are not those")
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = zipped([*members, members[0]], comment=comment)
    refused(path, twice, "has two members 'arrays/0.npy'")


def test_bombs_are_refused_before_they_are_unpacked(path):
    members, comment = members_of(saved()[0])
    bomb = zipped([*members[1:], ("arrays/0.npy", bytes(10**7))], zipfile.ZIP_DEFLATED, comment)
    assert len(bomb) < 10**5
    refused(path, bomb, "is compressed or encrypted, which no model is")
    # A directory that declares more than the file has.
    whole = bytearray(saved()[0])
    at = whole.rindex(b"PK\x01\x02")
    whole[at + 20 : at + 28] = struct.pack("<II", 2**31, 2**31)
    refused(path, bytes(whole), "declare .* bytes, and the file has|cannot be read")


@pytest.mark.parametrize(
    "declared",
    [
        {"shape": [10**9, 10**9]},
        {"shape": [-1]},
        {"shape": [1.5]},
        {"shape": [True]},
        {"shape": [1] * 9},
        {"dtype": "|O"},
        {"dtype": "O"},
        {"dtype": "<c16"},
        {"dtype": "<M8[s]"},
        {"dtype": [["a", "<f8"]]},
        {"dtype": "<f4"},
        {"sha256": None},
        {"sha256": "0"},
    ],
    ids=str,
)
def test_arrays_are_what_is_declared(path, declared):
    def lie(text):
        text["arrays"][0].update(declared)

    refused(path, with_text(lie), "declares an array|was declared|checksum")


def test_arrays_of_another_shape_or_of_objects_are_refused(path):
    class Evil:
        def __reduce__(self):
            return (open, (str(path.with_name("pwned")), "w"))

    for array in (np.ones((3, 3)), np.ones(10**5), np.float32(1), np.array([Evil()], dtype=object)):
        file = io.BytesIO()
        np.save(file, array, allow_pickle=True)
        refused(path, archive({"arrays/0.npy": file.getvalue()}), "was declared|Python objects")
    refused(path, archive({"arrays/0.npy": pickle.dumps(Evil())}), "was declared|NumPy file")
    assert not path.with_name("pwned").exists()


def test_flipped_bytes_of_numbers_and_text_are_found(path):
    content = saved()[0]
    for mark, further in ((b"NUMPY", 130), (b'"class": "FactoredFitted"', 50)):
        at = content.index(mark) + further
        flipped = content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]
        refused(path, flipped, "cannot be read|checksum")
    # Another program wrote the text: its own checksum in the zip is right, ours is not.
    members, comment = members_of(content)
    changed = [(name, inside.replace(b'"n_jobs": null', b'"n_jobs": 7777')) for name, inside in members]
    refused(path, zipped(changed, comment=comment), "model.json does not have the checksum")


def place(text, *names):
    for name in names:
        text = text[name]
    return text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("state"), "has no 'state'"),
        (lambda t: t.update(arrays={}), "has no 'arrays'"),
        (lambda t: t.update(format="1"), "names no format"),
        (lambda t: t.update(format=True), "names no format"),
        (lambda t: t["state"].update(model=[]), "holds no model"),
        (lambda t: t["state"]["model"].update({"class": "Popen"}), "a model is one of .*, got 'Popen'"),
        (lambda t: t["state"]["model"].update({"class": "Plan"}), "a model is one of .*, got 'Plan'"),
        (lambda t: t["state"]["model"].pop("steps"), "do not make a model"),
        (lambda t: t["state"]["model"].update(steps={"array": 10**6}), "names array 1000000, which does not exist"),
        (lambda t: t["state"]["model"].update(memory="/tmp/x"), "do not make a model|has no 'memory'"),
    ],
)
def test_a_forged_text_makes_no_model(path, change, message):
    refused(path, with_text(change), message)


def test_a_forged_estimator_hides_no_method_and_has_all_its_parts(path):
    def estimator(text):
        steps = place(text, "state", "model", "steps")
        return steps[1]["items"][1]

    cases = {
        r"has no 'predict': it is one of another version \(written by": lambda one: one.update(predict=1),
        "has no '__class__'": lambda one: one.update(__class__="x"),
        "has no 'new_setting'": lambda one: one.update(new_setting=1),
        "what a BicliqueSpectralClustering has found is missing": lambda one: one.update(_fitted=3),
        "a FactoredFitted without 'spectrum'": lambda one: one["_fitted"].pop("spectrum"),
        "names the class 'system', which is not one of biclique's": lambda one: one["_fitted"]["rule"].update(
            {"class": "system"}
        ),
    }
    for message, change in cases.items():
        refused(path, with_text(lambda text, change=change: change(estimator(text))), message)


def test_deep_and_long_texts_are_refused(path):
    deep = b'{"format": 1, "state": ' + b"[" * 10**5 + b"]" * 10**5 + b"}"
    refused(path, zipped([("model.json", deep)], comment=_signed(deep)), "cannot be read")
    digits = b'{"format": 1, "state": ' + b"9" * 10**4 + b"}"
    refused(path, zipped([("model.json", digits)], comment=_signed(digits)), "cannot be read")


def test_the_version_that_wrote_it_is_named(path):
    said = refused(path, with_text(lambda t: t["state"]["model"].pop("steps")), "written by biclique")
    assert re.search(r"written by biclique \S+, this is \d", said)
