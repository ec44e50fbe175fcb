"""Files that lie: refused in one sentence, before anything large is read, and no code is run."""

import io
import json
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
from scipy import sparse

import biclique
from biclique.exceptions import DataError
from biclique.models.saving import SCHEMA
from tests.fuzz.seeds_of_models import ROWS, members_of, saved, zipped


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.skops"


def refused(path, content, message):
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        biclique.load(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert text.isprintable()
    assert text.endswith(".")
    return text


def schema_of(content):
    return json.loads(members_of(content)[SCHEMA])


def with_schema(schema, content=None):
    return zipped(members_of(content or saved()[0]) | {SCHEMA: json.dumps(schema).encode()})


def attributes(schema, *names):
    """The node of an attribute of an attribute."""
    for name in names:
        schema = schema["content"]["content"][name]
    return schema


def with_array(array, *names, content=None):
    """A file with another array in the place of an attribute."""
    content = content or saved()[0]
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return zipped(members_of(content) | {attributes(schema_of(content), *names)["file"]: file.getvalue()})


def node(module, kind, loader="ObjectNode", **more):
    return {"__module__": module, "__class__": kind, "__loader__": loader, **more}


TEXT = node("builtins", "str", "JsonNode", content='"touch pwned"', is_json=True)
CALL = node("builtins", "tuple", "TupleNode", content=[TEXT])


@pytest.mark.parametrize(
    ("forged", "message"),
    [
        (node("os", "system", "FunctionNode"), "os.system"),
        (node("subprocess", "Popen", "ConstructorFromReduceNode", content=CALL), "subprocess.Popen"),
        (node("builtins", "eval", "TypeNode"), "builtins.eval"),
        (node("biclique.cli.run", "main", "FunctionNode"), "biclique.cli.run.main"),
        (node("biclique.fit.settings", "warn_user", "FunctionNode"), "is no object"),
        (node("biclique.fit.settings", "dataclass"), "biclique.fit.settings.dataclass"),
        (node("biclique.fit./tmp/evil", "Evil"), "biclique.fit./tmp/evil.Evil"),
        (node("biclique.kernels.named", "RBF", "ConstructorFromReduceNode", content=CALL), "RBF is no object"),
        (node("biclique.kernels.named", "RBF", "MethodNode", content={"func": "block", "obj": TEXT}), "is no object"),
        (node("numpy", "ndarray", "NewNode"), "NewNode"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_classes_and_functions_are_refused(path, forged, message, monkeypatch):
    monkeypatch.chdir(path.parent)
    schema = schema_of(saved()[0])
    schema["content"]["content"]["gamma"] = forged
    refused(path, with_schema(schema), message)
    refused(path, with_schema(forged | {"protocol": schema["protocol"]}), message)
    assert not path.with_name("pwned").exists()


def test_what_is_no_model(path, tmp_path):
    pickled = pickle.dumps(np.ones(3))
    empty = {"notes": {}, "version": "0.2"}
    for content in (
        b"",
        b"id,x\n1,2\n",
        b"PK\x03\x04",
        zipped({}),
        pickled,
        zipped({"biclique.json": json.dumps(empty).encode()}),
    ):
        refused(path, content, "cannot be read")
    for name in ("list", "dict"):
        text = node("builtins", name, "JsonNode", content="[1]", is_json=True, protocol=2)
        refused(path, with_schema(text), "must be an estimator")
    with pytest.raises(DataError, match="no such file"):
        biclique.load(tmp_path / "nothing")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_only_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(DataError, match="is a folder, a pipe or a device, and a model is a file"):
            biclique.load(path)


def test_files_of_the_version_before_name_it(path):
    old = {"format": 1, "made_by": {"biclique": "0.1.0"}, "arrays": [], "state": {}}
    refused(path, zipped({"model.json": json.dumps(old).encode()}), r"biclique 0\.1, which alone can read it")
    schema = schema_of(saved()[0])
    schema["content"]["content"]["gamma"] = node("biclique.fit.settings", "NewSettings")
    newer = zipped(members_of(with_schema(schema)) | {"biclique.json": b'{"version": "9.1", "notes": {}}'})
    refused(path, newer, r"written by biclique 9\.1, and this is \d.*NewSettings.*install that version")


def test_a_file_of_skops_is_read(path):
    members = members_of(saved()[0])
    del members["biclique.json"]
    path.write_bytes(zipped(members))
    assert len(biclique.load(path).predict(ROWS)) == len(ROWS)


def test_damage_is_found(path):
    """A byte that changes is found, or it is where nothing is read."""
    whole = saved()[0]
    path.write_bytes(whole)
    expected = biclique.load(path).transform(ROWS)
    refused(path, whole[100:], "cannot be read")
    refused(path, whole[:-100], "cannot be read")
    for at in np.linspace(0, len(whole) - 1, 150).astype(int):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        try:
            found = biclique.load(path)
        except DataError:
            continue
        np.testing.assert_array_equal(found.transform(ROWS), expected)


def test_bombs_are_refused_before_they_are_unpacked(path):
    members = members_of(saved()[0])
    bomb = zipped(members | {"0.npy": bytes(10**7)}, zipfile.ZIP_DEFLATED)
    assert len(bomb) < 10**5
    refused(path, bomb, "its members have more bytes than the file")
    whole = bytearray(saved()[0])
    at = whole.rindex(b"PK\x01\x02")
    whole[at + 20 : at + 28] = struct.pack("<II", 2**31, 2**31)
    refused(path, bytes(whole), "more bytes than the file|cannot be read")
    schema = schema_of(saved()[0])
    array = node("numpy", "ndarray", "NdArrayNode", type="numpy", file=attributes(schema, "eigenvalues_")["file"])
    schema["content"]["content"]["gamma"] = node(
        "builtins", "list", "ListNode", content=[{**array, "__id__": number} for number in range(1000)]
    )
    refused(path, with_schema(schema), "reads arrays more than once")


def test_deep_and_long_texts_are_refused(path, monkeypatch):
    for text in (b'{"content": ' + b"[" * 10**5 + b"]" * 10**5 + b"}", b'{"content": ' + b"9" * 10**4 + b"}"):
        refused(path, zipped({SCHEMA: text}), "cannot be read")
    monkeypatch.setattr("biclique.models.saving.SCHEMA_BYTES", 1000)
    refused(path, saved()[0], "limit 1000")


def test_arrays_of_objects_and_of_lies_are_refused(path):
    class Evil:
        def __reduce__(self):
            return (open, (str(path.with_name("pwned")), "w"))

    file = attributes(schema_of(saved()[0]), "eigenvalues_")["file"]
    pickled, huge = io.BytesIO(), io.BytesIO()
    np.save(pickled, np.array([Evil()], dtype=object), allow_pickle=True)
    np.lib.format.write_array_header_1_0(huge, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**9)})
    for content in (pickled.getvalue(), pickle.dumps(Evil()), huge.getvalue()):
        refused(path, zipped(members_of(saved()[0]) | {file: content}), "cannot be read")
    assert not path.with_name("pwned").exists()


def test_numbers_that_predict_would_count_to_are_refused(path):
    for label in (10**9, 10**5, -(10**9)):
        labels = np.full(len(ROWS), label)
        refused(path, with_array(labels, "_fitted", "seen", "labels"), "labels has the index")
    schema = schema_of(saved()[0])
    count = node("builtins", "int", "JsonNode", content="1000000000", is_json=True)
    schema["content"]["content"]["n_clusters_"] = count
    refused(path, with_schema(schema), "n_clusters_ is 1000000000 in a file of")
    del schema["content"]["content"]["_fitted"]["content"]["content"]["seen"]["content"]["content"]["labels"]
    schema["content"]["content"]["n_clusters_"]["content"] = "3"
    refused(path, with_schema(schema), "a Seen is not whole")
    schema = schema_of(saved()[1])
    schema["content"]["content"]["memory"] = TEXT
    refused(path, with_schema(schema, saved()[1]), "a Pipeline names the folder")


def test_indices_of_a_sparse_matrix_are_checked(path):
    rows = sparse.csr_array(np.where(ROWS > 1, ROWS, 0))
    biclique.save(biclique.BicliqueSpectralClustering(2, affinity="linear", random_state=0).fit(rows), path)
    content = path.read_bytes()
    matrices = {
        name: sparse.load_npz(io.BytesIO(held)) for name, held in members_of(content).items() if name.endswith(".npz")
    }
    name, matrix = max(matrices.items(), key=lambda one: one[1].nnz)
    matrix.indices[0] = 10**6
    file = io.BytesIO()
    sparse.save_npz(file, matrix)
    refused(path, zipped(members_of(content) | {name: file.getvalue()}), "indices|index values|cannot be read")
