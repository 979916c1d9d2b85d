import numpy as np
import pytest

from focalcal.calibration.kernels import binned


@pytest.mark.parametrize("seed", range(5))
def test_cells_never_fall_as_confidences_grow(seed):
    generator = np.random.default_rng(seed)
    near_one = 1.0 - 2.0 ** -generator.uniform(1, 54, 3000)
    spread = np.concatenate(
        [generator.random(3000), 2.0 ** -generator.uniform(0, 40, 3000), near_one, [0.5, 1.0]]
    )
    around = np.sort(np.concatenate([spread, np.nextafter(spread, 0), np.nextafter(spread, 1)]))
    cells = np.empty(len(around), np.uint32)
    low, high = binned.find_cells(around, cells)
    assert np.all(np.diff(cells.astype(np.int64)) >= 0)
    assert (low, high) == (cells[0], cells[-1])
    assert high == binned.cell_of(1.0) == binned.CELLS - 1
    assert low >= 0


@pytest.mark.parametrize("count", [0, 1, 2, binned.RUN, binned.RUN + 1, 100, 1000])
@pytest.mark.parametrize("distinct", [1, 3, 10**6])
def test_sorting_is_stable(count, distinct):
    confidences = np.random.default_rng(count).integers(0, distinct, count + 7) / distinct
    members = np.arange(count + 7)
    binned.sort_stably(members, np.empty_like(members), confidences, 3, count + 3)
    np.testing.assert_array_equal(members[:3], [0, 1, 2])
    np.testing.assert_array_equal(members[count + 3 :], np.arange(count + 3, count + 7))
    expected = 3 + np.argsort(confidences[3 : count + 3], kind="stable")
    np.testing.assert_array_equal(members[3 : count + 3], expected)
