import io
import os
import zipfile

import numpy as np
import pytest

from focalcal.common.errors import UserError
from focalcal.common.npz import read_npz


def test_a_small_file_that_unpacks_to_more_than_memory_is_refused(tmp_path, monkeypatch):
    """A zip bomb: a megabyte of zeros in a kilobyte, on a machine with a hundred pages of memory."""
    np.savez_compressed(tmp_path / "bomb.npz", x=np.zeros(2**17))
    assert (tmp_path / "bomb.npz").stat().st_size < 2**12
    assert read_npz(tmp_path / "bomb.npz")["x"].size == 2**17
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 100}.get)
    with pytest.raises(
        UserError, match=r"bomb.npz unpacks to 1\.05e\+06 bytes; allowed on this machine: 1\.02e\+05;"
    ):
        read_npz(tmp_path / "bomb.npz")


def test_a_header_that_claims_petabytes_is_refused(tmp_path):
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f8", "fortran_order": False, "shape": (2**50,)})
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", content.getvalue())
    with pytest.raises(UserError, match=r"does not fit into memory .*PiB"):
        read_npz(tmp_path / "x.npz")
