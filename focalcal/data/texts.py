"""Texts as numbers: tokenisation, vocabulary, right-aligned word numbers, word vectors."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from focalcal.common.io import refusing_damage

_LOG = logging.getLogger(__name__)
LONGEST_WORD = 100
"""Longer "words", such as encoded files, are left out: an array of words is as wide as its longest."""
RANDOM_SPREAD = 0.5
"""Vectors that are all drawn at random are about as large as GloVe's."""
TOKENISATION = (
    f"words in lower case of at most {LONGEST_WORD} characters, separated by white space and ASCII "
    f"punctuation except '"
)
"""What `tokens` and `vocabulary` do, for the record of a dataset."""
_SEPARATORS = str.maketrans(dict.fromkeys('!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n\r', " "))
_SHOWN_WORDS = 8


@dataclass(frozen=True)
class WordVectors:
    """The vectors of a vocabulary and the words that had none."""

    values: np.ndarray
    """float32 (V, d)."""
    missing: list[str]


def tokens(text: str) -> list[str]:
    """Return the words of `text` in lower case; ASCII punctuation except ' separates words.

    This is the tokenisation of the Keras example that M20's network for 20 Newsgroups goes back to.
    """
    return text.lower().translate(_SEPARATORS).split()


def without_header(text: str) -> str:
    """Return a newsgroup posting after its header, which ends at the first empty line; nothing may follow."""
    _, empty_line, body = text.partition("\n\n")
    return body if empty_line else text


def vocabulary(texts: Iterable[Sequence[str]], size: int | None = None) -> list[str]:
    """Return the empty word and the `size` most frequent words, frequent ones first, ties alphabetically.

    Words of more than LONGEST_WORD characters are left out.
    """
    counts = Counter(word for words in texts for word in words if len(word) <= LONGEST_WORD)
    return ["", *sorted(counts, key=lambda word: (-counts[word], word))[:size]]


def word_numbers(texts: Sequence[Sequence[str]], words: Sequence[str], length: int) -> np.ndarray:
    """Return int32 (n, m): the numbers of each text's last words, right-aligned after zeros.

    Words outside the vocabulary are left out before a text is cut to its last `length` words; m is the
    largest number of words that are left.
    """
    number_of = {word: number for number, word in enumerate(words)}
    known = [[number_of[word] for word in text if word in number_of][-length:] for text in texts]
    numbers = np.zeros((len(texts), max(map(len, known))), dtype=np.int32)
    for row, text in zip(numbers, known, strict=True):
        row[len(row) - len(text) :] = text
    return numbers


def shared_texts(numbers: np.ndarray, indices: Mapping[str, np.ndarray]) -> int:
    """Return how many different texts, as `word_numbers` gives them, occur in more than one split."""
    splits = Counter(
        text
        for chosen in indices.values()
        for text in {hash(row.tobytes()) for row in numbers[chosen] if row.any()}
    )
    return sum(count > 1 for count in splits.values())


def read_vectors(
    path: Path | None, words: Sequence[str], dimensions: int, spread: float, seed: int = 0
) -> WordVectors:
    """Return the vectors of `words` from a file in GloVe's text format: a word and d numbers on each line.

    A word without a vector gets one drawn uniformly from [-spread, spread]. Without a file, all do, from
    [-RANDOM_SPREAD, RANDOM_SPREAD]. Raise ValueError if the file has a vector for none of the words.
    """
    random = np.random.RandomState(seed)
    spread = RANDOM_SPREAD if path is None else spread
    values = random.uniform(-spread, spread, (len(words), dimensions)).astype(np.float32)
    values[0] = 0
    number_of = {word: number for number, word in enumerate(words)}
    found = {""}
    if path is not None:
        with refusing_damage(path), path.open(encoding="utf-8") as lines:
            for line in lines:
                word, _, numbers = line.partition(" ")
                if word in number_of and word not in found:
                    vector = np.array(numbers.split(), dtype=np.float32)
                    if vector.shape != (dimensions,):
                        raise ValueError(f"it has {vector.size} numbers for {word!r}, not {dimensions}")
                    values[number_of[word]] = vector
                    found.add(word)
        if len(found) == 1:
            raise ValueError(
                f"{path} has a vector for none of the {len(words) - 1} words; delete it if it is damaged, "
                f"else set vectors to null"
            )
    return WordVectors(values, [word for word in words if word not in found])


def warn_about_texts(dataset: str, wordless: int, shared: int) -> None:
    """Log how many texts have no words, and how many occur in more than one split."""
    if wordless:
        _LOG.warning("%s: texts without a word of the vocabulary: %d", dataset, wordless)
    if shared:
        _LOG.warning("%s: texts that occur, word for word, in more than one split: %d", dataset, shared)


def warn_about_missing(dataset: str, source: str, vectors: WordVectors) -> None:
    """Log how many words have no vector, naming the most frequent ones."""
    total, missing = len(vectors.values) - 1, vectors.missing
    if missing:
        shown = ", ".join(missing[:_SHOWN_WORDS])
        _LOG.warning(
            "%s: %d of %d words have no vector in %s, the most frequent: %s",
            dataset, len(missing), total, source, shown,
        )  # fmt: skip
