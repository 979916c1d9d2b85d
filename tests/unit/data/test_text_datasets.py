"""Small texts in the official formats, from their archives to the prepared file."""

import json
import shutil
from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest

from focalcal.common.errors import UserError
from focalcal.data import prepared, registry, user_data
from focalcal.data.fetch import obtain
from focalcal.data.prepare import prepare_dataset
from tests.project import ROOT
from tests.unit.data import official_formats as formats
from tests.unit.data.conftest import file_entry
from workflow_scripts import fetch_data, inspect_data

TREES = {
    "train": "(4 (2 a) (4 (3 good) (2 film)))\n(1 (2 not) (3 good))\n(2 (2 a) (2 film))\n(0 bad)\n",
    "dev": "(3 (2 a) (3 good))\n(0 (1 bad) (2 film))\n",
    "test": "(1 (1 bad) (2 acting))\n(4 good)\n",
}
GROUPS = ("rec.autos", "sci.space")
VECTORS = {word: [float(i)] * 100 for i, word in enumerate(("good", "film", "car", "moon"), start=1)}


@pytest.fixture
def cache(tmp_path):
    """Return a cache folder with word vectors placed by hand."""
    folder = tmp_path / "cache"
    (folder / "glove-6b-100d").mkdir(parents=True)
    (folder / "glove-6b-100d" / "glove.6B.100d.txt").write_text(formats.glove_text(VECTORS))
    return folder


def served_spec(name, server, files, archive, content, convert, **entry):
    """Return the spec of a small version of a text dataset, served from an archive."""
    spec = registry.job_spec(name)
    server.add(archive, content)
    source = {"kind": "http", "base": server.base, "archives": [archive], "convert": convert}
    origin = {"files": files, "archives": [file_entry(archive, content)], "sources": [source]}
    return {**spec, "entry": {**spec["entry"], **origin, **entry}}


def treebank_spec(server):
    content = formats.zip_bytes({f"trees/{split}.txt": text for split, text in TREES.items()})
    files = [file_entry(f"{split}.txt", text.encode()) for split, text in TREES.items()]
    counts = {"train": 3, "val": 2, "test": 2}
    return served_spec("sst-binary", server, files, "trees.zip", content, "zip-members", counts=counts)


def newsgroups_spec(server, count=12):
    postings = {
        (("train", "test")[i % 2], GROUPS[i % 2 if i < 6 else (i + 1) % 2], 100 + i): (
            f"From: someone\nSubject: {i}\n\nThe {('car', 'moon')[i % 2]}, number {i} caf\u00e9"
        )
        for i in range(count)
    }
    content = formats.newsgroups_archive(postings)
    files = [{"name": "20news-bydate.jsonl.gz"}]
    spec = served_spec(
        "20newsgroups", server, files, "20news-bydate.tar.gz", content, "newsgroups-json",
        counts={"all": count}, class_names=list(GROUPS), shape=[6],
    )  # fmt: skip
    spec["parameters"] |= {"validation": 3, "test": 4}
    return spec


def test_the_treebank_from_its_zip(server, cache, caplog):
    preparation = prepare_dataset(treebank_spec(server), cache)
    data = preparation.data
    assert data.kind == "trees"
    assert preparation.class_names == ["negative", "positive"]
    assert [data.indices(split).tolist() for split in ("train", "val", "test")] == [[0, 1, 2], [3, 4], [5, 6]]
    assert data.labels.tolist() == [1, 0, 0, 1, 0, 0, 1], "the neutral sentence is gone"
    assert data.words.tolist() == ["", "good", "bad", "a", "film", "acting", "not"]
    first = [[3, -1, -1, 2], [1, -1, -1, 1], [4, -1, -1, 2], [-1, 1, 2, 1], [-1, 0, 3, 1]]
    assert data.inputs[0].tolist() == first
    assert data.vectors[[1, 4], 0].tolist() == [1, 2]
    assert preparation.text["words without vectors"] == 4
    assert "4 of 6 words have no vector in glove-6b-100d, placed in the cache by hand" in caplog.text
    assert preparation.source.endswith("word vectors: glove-6b-100d, placed in the cache by hand")


def test_newsgroups_from_their_archive(server, cache):
    preparation = prepare_dataset(newsgroups_spec(server), cache)
    data = preparation.data
    assert data.kind == "tokens"
    order = np.arange(12)
    np.random.RandomState(1).shuffle(order)
    np.testing.assert_array_equal(data.test_indices, order[:4])
    np.testing.assert_array_equal(data.val_indices, order[4:7])
    np.testing.assert_array_equal(data.train_indices, order[7:])
    # The first in the archive's order: training, rec.autos, number 100; its header is gone.
    words = data.words[data.inputs[0]].tolist()
    assert words == ["the", "car", "number", "0", "caf\u00e9"]
    assert data.labels[0] == 0
    assert data.vectors[data.words.tolist().index("car"), 0] == 3
    assert not data.vectors[data.words.tolist().index("the")].any(), "words without vectors are zero"
    assert preparation.text["words"] == 17
    assert preparation.text["cut to"] == 6


@pytest.mark.parametrize("make", [newsgroups_spec, treebank_spec])
def test_official_texts_with_random_vectors(server, tmp_path, caplog, make):
    spec = make(server)
    spec["parameters"]["vectors"] = None
    preparation = prepare_dataset(spec, tmp_path)
    assert 0.4 < np.abs(preparation.data.vectors[1:]).max() <= 0.5
    assert preparation.text["words without vectors"] == len(preparation.data.words) - 1
    assert "no vector in" not in caplog.text


def test_vectors_from_glove_and_from_the_mirror(server, tmp_path):
    files = registry.load_vectors_entry("glove-6b-100d")["files"]
    contents = {
        "zip-members": formats.zip_bytes(
            {"glove.6B.50d.txt": "x 1\n", "glove.6B.100d.txt": formats.glove_text(VECTORS)}
        ),
        "wink-glove": formats.wink_package({**VECTORS, 'quo"te': [0.5] * 100}),
    }
    lines = {}
    for convert, content in contents.items():
        server.add(convert, content)
        source = {"kind": "http", "base": server.base, "archives": [convert], "convert": convert}
        entry = {"files": files, "archives": [file_entry(convert, content)], "sources": [source]}
        folder = obtain(convert, entry, tmp_path).folder
        lines[convert] = (folder / "glove.6B.100d.txt").read_text().splitlines()
    assert lines["zip-members"] == lines["wink-glove"][:4]
    assert lines["wink-glove"][4:] == ['quo"te ' + " ".join(["0.5"] * 100)]


def test_prepared_texts_can_be_written_read_and_drawn(server, cache, tmp_path):
    for name, spec in {"trees": treebank_spec(server), "tokens": newsgroups_spec(server)}.items():
        output, record = tmp_path / f"{name}.npz", tmp_path / f"{name}.json"
        arguments = ["--spec", json.dumps(spec), "--cache", str(cache)]
        fetch_data.main([*arguments, "--output", str(output), "--record", str(record)])
        data = prepared.load_dataset(output, memory_map=True)
        assert (data.kind, data.words[0]) == (name, "")
        assert json.loads(record.read_text())["text"]["dimensions"] == 100
        figure, table = tmp_path / f"{name}.png", tmp_path / f"{name}.csv"
        inspect_data.main(
            ["--data", str(output), "--record", str(record), "--figure", str(figure), "--table", str(table)]
        )
        assert matplotlib.image.imread(figure).std() > 0
        assert len(table.read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": None}, "tokens need words and vectors"),
        ({"words": np.array(["a", "b"])}, "with word 0 empty"),
        (
            {"vectors": np.zeros((3, 4), np.float32)},
            r"vectors must be float32 \(18, d\), not float32 \(3, 4\)",
        ),
        ({"vectors": np.ones((18, 4), np.float32)}, "that of word 0 zero"),
        ({"inputs": np.full((12, 5), 18, np.int32)}, r"words must be numbered 0\.\.17, not 18\.\.18"),
    ],
)
def test_malformed_texts_are_refused(server, cache, change, message):
    data = prepare_dataset(newsgroups_spec(server), cache).data
    with pytest.raises(ValueError, match=message):
        prepared.validate(replace(data, **change))


def own_spec(path, **settings):
    return registry.job_spec("reviews", {"texts": str(path), "vectors": None, "dimensions": 4, **settings})


def test_own_texts_from_a_csv_file_with_splits(tmp_path):
    rows = [("Good film", "pos", "train"), ("bad film", "neg", "train"), ("so good", "pos", "test")]
    rows += [("so bad", "neg", "test"), ("good", "pos", "val"), ("bad", "neg", "val")]
    lines = ["text,label,split", *(f'"{text}",{label},{split}' for text, label, split in rows)]
    (tmp_path / "reviews.csv").write_text("\n".join(lines))
    preparation = prepare_dataset(own_spec(tmp_path / "reviews.csv", length=3), tmp_path)
    data = preparation.data
    assert preparation.class_names == ["neg", "pos"]
    assert data.words[data.inputs[data.train_indices]].tolist() == [["good", "film"], ["bad", "film"]]
    assert data.labels[data.test_indices].tolist() == [1, 0]
    assert data.vectors.shape == (5, 4)
    assert np.abs(data.vectors).max() <= 0.5
    assert preparation.text["vectors"] == "drawn at random"


def test_texts_without_words_and_in_several_splits_are_counted(tmp_path, caplog):
    rows = [("good", "x", "train"), ("bad", "y", "train"), ("", "x", "train"), ("so good", "x", "test")]
    rows += [("Bad!", "y", "test"), ("...", "x", "val"), ("fine", "y", "val")]
    (tmp_path / "odd.csv").write_text("\n".join(["text,label,split", *map(",".join, rows)]))
    record = prepare_dataset(own_spec(tmp_path / "odd.csv"), tmp_path).text
    assert (record["texts without words"], record["texts in several splits"]) == (2, 1)
    assert "reviews: texts without a word of the vocabulary: 2" in caplog.messages
    assert "reviews: texts that occur, word for word, in more than one split: 1" in caplog.messages


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("words,label\na,b\n", "has the columns 'words', 'label'; allowed: text, label and optionally split"),
        ("text;label\na;b\n", "has the columns 'text;label'; allowed: .* separated by commas; rename, add"),
        ("text,label\n", "has no rows below its header"),
        ("text,label\na,x\nb,x\n", "has only the class 'x'; allowed: 2 or more"),
        ("text,label,split\na,x,train\nb,y,dev\n", "has the split 'dev'; allowed: train, val, test"),
        ("text,label,split\na,x,train\nb,y,train\n", "has no test split; add it, or remove the column"),
        ("text,label\n" + ",x\n!?,y\n" * 5, "none of its 10 texts has a word; allowed: words in lower case"),
        (
            "text,label\na,x\nso bad, really,y\n",
            "row 2 does not have 2 cells; allowed: one per column; put a",
        ),
        ("text,label\na,x\nb, \n", "row 2 has no label"),
        (b"text,label\ncaf\xe9,x\n", r"t\.csv cannot be read as CSV in UTF-8 \('utf-8' codec"),
    ],
)
def test_wrong_csv_files_are_named(tmp_path, content, message):
    (tmp_path / "t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=message):
        prepare_dataset(own_spec(tmp_path / "t.csv"), tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"not gzip", formats.gz(b"{}\n" * 999)[:-9], formats.gz(b"{}")],
    ids=["empty", "not gzip", "cut short", "not a posting"],
)
def test_a_damaged_file_of_postings_is_named(server, cache, content):
    spec = newsgroups_spec(server, count=0 if content else 12)
    (cache / "20newsgroups").mkdir()
    (cache / "20newsgroups" / "20news-bydate.jsonl.gz").write_bytes(content)
    with pytest.raises(UserError, match=r"20news-bydate\.jsonl\.gz is damaged .*; delete it and start"):
        prepare_dataset(spec, cache)


def test_newsgroups_with_cross_posts(server, cache, tmp_path, monkeypatch):
    (tmp_path / "extensions" / "datasets").mkdir(parents=True)
    shutil.copy(
        ROOT / "docs" / "examples" / "cross-posts" / "cross-posts.py", tmp_path / "extensions" / "datasets"
    )
    monkeypatch.setenv("FOCALCAL_CACHE", str(cache))
    spec = newsgroups_spec(server)
    monkeypatch.setattr(registry, "job_spec", lambda _name: spec)
    plain = prepare_dataset(spec, cache).data
    data = user_data.from_extension("cross-posts", {"copies": 5, "seed": 1}, tmp_path)
    prepared.validate(data)
    assert [len(data.indices(split)) for split in ("train", "val", "test")] == [10, 3, 4]
    np.testing.assert_array_equal(data.inputs[:12], plain.inputs)
    np.testing.assert_array_equal(data.labels[:12], plain.labels)
    for text, label in zip(data.inputs[12:], data.labels[12:], strict=True):
        first = next(i for i in range(12) if np.array_equal(plain.inputs[i], text))
        assert label == 1 - plain.labels[first], "a copy is in another group"


def test_a_text_that_is_not_utf8_is_named(tmp_path):
    for name in ("a", "b"):
        (tmp_path / "t" / name).mkdir(parents=True)
        (tmp_path / "t" / name / "1.txt").write_bytes(b"caf\xe9")
    with pytest.raises(UserError, match=r"1\.txt is not UTF-8 .* at byte 3\); convert it"):
        prepare_dataset(own_spec(tmp_path / "t"), tmp_path)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("own", {"texts": "nowhere.csv"}, r"own\.texts: 'nowhere\.csv' does not exist in"),
        ("own", {"texts": ".", "vectors": "w2v"}, r"own\.vectors: must be glove-6b-100d or null, not 'w2v'"),
        ("own", {"texts": ".", "dimensions": 50}, "dimensions: must be 100 for glove-6b-100d, not 50"),
        ("20newsgroups", {"validation": 18_000}, "validation and test must be whole numbers that leave"),
        ("20newsgroups", {"test": 0.5}, "validation and test must be whole numbers that leave"),
        ("sst-binary", {"validation": 5}, "unknown key; allowed: vectors"),
    ],
)
def test_wrong_settings_are_named(name, settings, message):
    with pytest.raises(UserError, match=message):
        registry.job_spec(name, settings)
