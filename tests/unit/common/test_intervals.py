import math

import pytest

from focalcal.common.intervals import NORMAL_HALF_WIDTH


def test_a_normal_interval_covers_95_per_cent():
    assert math.erf(NORMAL_HALF_WIDTH / math.sqrt(2)) == pytest.approx(0.95, rel=1e-15)
