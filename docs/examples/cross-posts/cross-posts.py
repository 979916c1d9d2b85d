"""20 Newsgroups with cross-posts: postings that appear in a second group too.

The original archive has 19,997 postings. The by-date archive has 18,846, each in one group only, and does not
say where the others were. Here the cross-posted ones are drawn at random, and the second group of each from
those of the same hierarchy, such as comp.
"""

from dataclasses import replace

import numpy as np

from focalcal.data import registry
from focalcal.data.fetch import cache_folder
from focalcal.data.prepare import prepare_dataset


def load(options):
    """Return 20 Newsgroups with `copies` more postings, split at random; held-out sets keep their sizes."""
    preparation = prepare_dataset(registry.job_spec("20newsgroups"), cache_folder())
    data, random = preparation.data, np.random.RandomState(options["seed"])
    hierarchies = np.array([group.partition(".")[0] for group in preparation.class_names])
    rows = random.choice(len(data.labels), options["copies"], replace=False)
    second = [random.choice(others(hierarchies, group)) for group in data.labels[rows]]
    order = random.permutation(len(data.labels) + len(rows))
    test, val, train = np.split(order, np.cumsum([len(data.test_indices), len(data.val_indices)]))
    return replace(
        data,
        inputs=np.concatenate([data.inputs, data.inputs[rows]]),
        labels=np.concatenate([data.labels, np.array(second, dtype=np.int64)]),
        train_indices=train,
        val_indices=val,
        test_indices=test,
    )


def others(hierarchies, group):
    """Return the other groups of a group's hierarchy, or all others if it is alone there."""
    other = np.arange(len(hierarchies)) != group
    related = other & (hierarchies == hierarchies[group])
    return np.flatnonzero(related if related.any() else other)
