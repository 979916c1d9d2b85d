import numpy as np
import pytest

from focalcal.common.errors import UserError
from focalcal.data import texts, treebank


def test_tokens_split_at_punctuation_but_not_at_apostrophes():
    assert texts.tokens("Don't  re-read\tline_1,\n(the END)!") == [
        "don't",
        "re",
        "read",
        "line",
        "1",
        "the",
        "end",
    ]


def test_a_header_ends_at_the_first_empty_line():
    assert texts.without_header("From: me\nSubject: x\n\nBody\n\nmore") == "Body\n\nmore"
    assert texts.without_header("no header") == "no header"
    assert texts.without_header("From: me\nLines: 0\n\n") == "", "six postings have no body"


def test_vocabulary_has_frequent_words_first_and_ties_in_alphabetical_order():
    documents = [["b", "a", "c"], ["c", "b"], ["c", "d"]]
    assert texts.vocabulary(documents) == ["", "c", "b", "a", "d"]
    assert texts.vocabulary(documents, 2) == ["", "c", "b"]


def test_texts_keep_their_last_known_words_right_aligned():
    numbers = texts.word_numbers([["a", "x", "b"], ["b", "b", "a", "x", "a"], []], ["", "a", "b"], 3)
    assert numbers.dtype == np.int32
    assert numbers.tolist() == [[0, 1, 2], [2, 1, 1], [0, 0, 0]]
    assert texts.word_numbers([["a"], ["b", "x", "a"]], ["", "a", "b"], 1000).tolist() == [[0, 1], [2, 1]]


def test_texts_that_occur_in_several_splits():
    numbers = np.array([[0, 1], [0, 1], [1, 1], [0, 0], [0, 0], [2, 1], [1, 1], [0, 1]], dtype=np.int32)
    indices = {"train": np.array([0, 1, 3]), "val": np.array([2, 4]), "test": np.array([5, 6, 7])}
    assert texts.shared_texts(numbers, indices) == 2, "those with the numbers 0 1 and 1 1; not the empty one"


def test_vectors_come_from_the_file_and_others_from_the_seed(tmp_path):
    file = tmp_path / "glove.txt"
    file.write_text("the 1 2\na 3.5 -4\nthe 9 9\nunused 0 0\n")
    found = texts.read_vectors(file, ["", "a", "zebra", "the"], 2, 0.05)
    assert found.missing == ["zebra"]
    assert found.values[[0, 1, 3]].tolist() == [[0, 0], [3.5, -4], [1, 2]]
    assert 0 < np.abs(found.values[2]).max() <= 0.05
    again = texts.read_vectors(file, ["", "a", "zebra", "the"], 2, 0.05)
    np.testing.assert_array_equal(found.values, again.values)
    assert not texts.read_vectors(file, ["", "zebra", "a"], 2, 0.0).values[1].any()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a 1 2\n", r"glove\.txt is damaged \(it has 2 numbers for 'a', not 3\); delete it"),
        (b"a x y z\n", r"glove\.txt is damaged \(could not convert string to float: 'x'\); delete it"),
        (b"caf\xe9 1 2 3\n", r"glove\.txt is damaged \('utf-8' codec can't decode byte 0xe9"),
    ],
)
def test_damaged_vectors_are_named(tmp_path, content, message):
    (tmp_path / "glove.txt").write_bytes(content)
    with pytest.raises(UserError, match=message):
        texts.read_vectors(tmp_path / "glove.txt", ["", "a"], 3, 0.0)


def test_trees_list_children_before_parents():
    nodes = treebank.parse_tree("(3 (2 It) (4 (2 's) (4 -LRB-)))")
    assert [(node.label, node.word, node.left, node.right) for node in nodes] == [
        (2, "it", -1, -1),
        (2, "'s", -1, -1),
        (4, "(", -1, -1),
        (4, None, 1, 2),
        (3, None, 0, 3),
    ]
    assert treebank.parse_tree("(2 (2 8\u00a01\\/2) (1 bad))")[0].word == "8\u00a01/2"


def test_nodes_become_rows():
    trees = [treebank.parse_tree(line) for line in ("(4 (2 very) (3 good))", "(0 bad)")]
    rows = treebank.node_rows(trees, ["", "bad", "good", "very"], (0, 0, 2, 1, 1))
    assert rows.dtype == np.int32
    assert rows.tolist() == [
        [[3, -1, -1, 2], [2, -1, -1, 1], [-1, 0, 1, 1]],
        [[1, -1, -1, 0], [-1, -1, -1, -1], [-1, -1, -1, -1]],
    ]
