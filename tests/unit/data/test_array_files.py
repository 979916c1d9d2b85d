"""Arrays from files of strangers: what they hold comes out, and nothing in them is executed."""

import io
import os
import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from focalcal.data.array_files import MOST_OPERATIONS, read_arrays
from focalcal.data.errors import ArchiveError

LOGITS = np.random.RandomState(0).normal(size=(6, 3)).astype(np.float32)
LABELS = np.array([0, 2, 1, 1, 0, 2])
COLUMNS = {"label": "5", "logits": {"A": "Logit_A", "B": "Logit_B"}}


def old_names(pickled):
    """Return a pickle of protocol 2 or 3 with NumPy's name for its core before version 2."""
    return pickled.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


def assert_read(path, content):
    path.write_bytes(content)
    found = read_arrays(path)
    np.testing.assert_array_equal(found["logits"], LOGITS, strict=True)
    np.testing.assert_array_equal(found["labels"], LABELS, strict=True)


def refused(path, content, message, **options):
    path.write_bytes(content)
    with pytest.raises(ArchiveError, match=message) as caught:
        read_arrays(path, **options)
    assert "\n" not in str(caught.value)


class TestPickles:
    @pytest.mark.parametrize("protocol", [3, 4])
    @pytest.mark.parametrize("container", [tuple, list])
    def test_a_pair_of_arrays(self, tmp_path, protocol, container):
        assert_read(tmp_path / "x.p", pickle.dumps(container((LOGITS, LABELS)), protocol))

    def test_the_old_name_of_numpys_core(self, tmp_path):
        content = old_names(pickle.dumps((LOGITS, LABELS), 3))
        assert b"numpy.core.multiarray" in content
        assert_read(tmp_path / "x.p", content)

    def test_fortran_order_other_byte_order_and_labels_in_a_column(self, tmp_path):
        pair = (np.asfortranarray(LOGITS), LABELS.astype(">i8")[:, None])
        (tmp_path / "x.p").write_bytes(pickle.dumps(pair, 4))
        found = read_arrays(tmp_path / "x.p")
        np.testing.assert_array_equal(found["logits"], LOGITS)
        np.testing.assert_array_equal(found["labels"], LABELS)

    def test_two_pairs_are_validation_and_test(self, tmp_path):
        pairs = [(LOGITS, LABELS.astype(np.uint8)[:, None]), (LOGITS[:4], LABELS[:4])]
        (tmp_path / "x.p").write_bytes(pickle.dumps(pairs, 3))
        found = read_arrays(tmp_path / "x.p")
        assert {name: len(array) for name, array in found.items()} == {
            "val_logits": 6,
            "val_labels": 6,
            "test_logits": 4,
            "test_labels": 4,
        }

    def test_a_call_is_not_made(self, tmp_path):
        target = tmp_path / "made"

        class Hostile:
            def __reduce__(self):
                return os.mkdir, (str(target),)

        for protocol in range(6):
            pickled = pickle.dumps((LOGITS[:1, :1], Hostile()), protocol)
            refused(tmp_path / "x.p", pickled, r"refused to unpickle: .* is not allowed")
        assert not target.exists()

    @pytest.mark.parametrize(
        "name", ["numpy.load", "numpy.memmap", "numpy.core.multiarray.fromfile", "builtins.eval", "os.system"]
    )
    def test_only_numpys_three_names_are_known(self, tmp_path, name):
        module, _, attribute = name.rpartition(".")
        content = b"\x80\x02c%s\n%s\n." % (module.encode(), attribute.encode())
        refused(tmp_path / "x.p", content, f"{name} is not allowed")

    def test_every_truncation_is_refused(self, tmp_path):
        content = pickle.dumps((LOGITS, LABELS), 4)
        for length in range(0, len(content), 7):
            refused(tmp_path / "x.p", content[:length], "refused to unpickle|holds")

    @pytest.mark.parametrize(
        "pickled",
        [
            b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"x.",  # bytes
            b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"x.",  # bytearray
            b"\x80\x02B" + struct.pack("<I", 1 << 31) + b"x.",
            b"\x80\x02Nr" + struct.pack("<I", 1 << 31) + b".",  # place in the memo
            b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b"N.",  # frame
            b"\x80\x02\x8b" + struct.pack("<I", 1 << 30) + b"x.",  # whole number
        ],
    )
    def test_memory_is_not_taken_for_what_is_only_declared(self, tmp_path, pickled):
        (tmp_path / "x.p").write_bytes(pickled)
        tracemalloc.start()
        try:
            with pytest.raises(ArchiveError, match=r"refused to unpickle|it holds"):
                read_arrays(tmp_path / "x.p")
            assert tracemalloc.get_traced_memory()[1] < 1 << 22
        finally:
            tracemalloc.stop()

    def test_a_shape_beyond_the_data_is_refused(self, tmp_path):
        content = pickle.dumps((LOGITS, LABELS), 3).replace(b"K\x06K\x03\x86", b"K\xffK\x03\x86")
        refused(tmp_path / "x.p", content, r"array of shape \(255, 3\) whose data have another size")

    def test_objects_and_endless_programs_are_refused(self, tmp_path):
        pickled = pickle.dumps((np.array([None, 1], dtype=object), LABELS), 3)
        refused(tmp_path / "x.p", pickled, "type 'O8'; allowed: f2, f4")
        content = b"\x80\x02(" + b"N" * MOST_OPERATIONS + b"t."
        refused(tmp_path / "x.p", content, f"more than {MOST_OPERATIONS} operations")

    @pytest.mark.parametrize("value", [(LOGITS,), (LOGITS, LABELS, LABELS), ("a", LABELS), {"a": "b"}])
    def test_what_is_no_pair_of_arrays_is_refused(self, tmp_path, value):
        refused(tmp_path / "x.p", pickle.dumps(value, 4), "it holds")


class TestTensors:
    """Archives as torch.save writes them, and damaged or forged ones."""

    @staticmethod
    def saved(path, value):
        torch.save(value, path)
        return path.read_bytes()

    def forged(self, path, change):
        """Return an archive of the pair with members changed by a function of a name and its content."""
        self.saved(path, (torch.from_numpy(LOGITS), torch.from_numpy(LABELS)))
        out = io.BytesIO()
        with zipfile.ZipFile(path) as source, zipfile.ZipFile(out, "w") as target:
            for name in source.namelist():
                target.writestr(name, change(name, source.read(name)))
        return out.getvalue()

    def test_a_pair_of_tensors(self, tmp_path):
        pair = (torch.from_numpy(LOGITS), torch.from_numpy(LABELS))
        assert_read(tmp_path / "x.pt", self.saved(tmp_path / "x.pt", pair))

    def test_views_of_one_storage_with_strides_and_offset(self, tmp_path):
        storage = torch.zeros(3, 8)
        storage[:, 2:] = torch.from_numpy(LOGITS).T
        pair = [storage.T[2:], torch.from_numpy(LABELS)]
        assert_read(tmp_path / "x.pt", self.saved(tmp_path / "x.pt", pair))

    def test_a_call_is_not_made(self, tmp_path):
        class Hostile:
            def __reduce__(self):
                return os.mkdir, (str(tmp_path / "made"),)

        content = self.saved(tmp_path / "x.pt", (torch.from_numpy(LOGITS), Hostile()))
        refused(tmp_path / "x.pt", content, "refused to unpickle: .*mkdir is not allowed")
        assert not (tmp_path / "made").exists()

    def test_a_tensor_larger_than_its_storage_is_refused(self, tmp_path):
        def stretched(name, content):
            return content.replace(b"K\x06K\x03\x86", b"K\xffK\x03\x86") if "pkl" in name else content

        refused(tmp_path / "x.pt", self.forged(tmp_path / "x.pt", stretched), "larger than its storage")

    def test_a_storage_of_another_size_and_big_endian_are_refused(self, tmp_path):
        cut = self.forged(tmp_path / "x.pt", lambda name, data: data[:-4] if name.endswith("/0") else data)
        refused(tmp_path / "x.pt", cut, "storage '0' has another type or size than declared")
        big = self.forged(tmp_path / "x.pt", lambda name, data: b"big" if "byteorder" in name else data)
        refused(tmp_path / "x.pt", big, "byte order is b'big'; allowed: little")

    def test_truncated_archives_are_refused(self, tmp_path):
        content = self.saved(tmp_path / "x.pt", (torch.from_numpy(LOGITS), torch.from_numpy(LABELS)))
        for length in range(0, len(content), 101):
            refused(tmp_path / "x.pt", content[:length], "not an archive of tensors")

    def test_a_bomb_is_refused(self, tmp_path):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x/data.pkl", b"\0" * (1 << 24))
        refused(tmp_path / "x.pt", out.getvalue(), "unpacks to 16777216 bytes, more than")


class TestTables:
    TABLE = '0,5,Logit_A,Logit_B\n"a question,\nof two lines",B,1.5,-2\nother,A,0.25,3e1\n'

    def test_columns_by_name(self, tmp_path):
        (tmp_path / "x.csv").write_text(self.TABLE, encoding="utf-8")
        found = read_arrays(tmp_path / "x.csv", COLUMNS)
        np.testing.assert_array_equal(found["logits"], [[1.5, -2], [0.25, 30]])
        np.testing.assert_array_equal(found["labels"], [1, 0])

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("Logit_B\n", "Logit_X\n", "no column 'Logit_B'"),
            (",B,", ",E,", "row 0 of the table is damaged: 'E' is not in list"),
            ("3e1", "three", "row 2 of the table is damaged: could not convert"),
            (",3e1", "", "row 2 of the table is damaged"),
            ('lines"', "lines", "damaged"),
        ],
    )
    def test_damage_is_named(self, tmp_path, old, new, message):
        refused(tmp_path / "x.csv", self.TABLE.replace(old, new).encode(), message, columns=COLUMNS)


class TestNpy:
    def test_an_array_is_called_like_its_file(self, tmp_path):
        np.save(tmp_path / "val_logits.npy", LOGITS)
        np.testing.assert_array_equal(read_arrays(tmp_path / "val_logits.npy")["val_logits"], LOGITS)

    def test_a_larger_shape_truncation_and_objects_are_refused(self, tmp_path):
        out = io.BytesIO()
        np.save(out, LOGITS)
        content = out.getvalue()
        refused(tmp_path / "x.npy", content.replace(b"(6, 3)", b"(9, 9)"), "declares 324 bytes .* holds 72")
        refused(tmp_path / "x.npy", content[:-1], "declares 72 bytes of float32 but holds 71")
        refused(tmp_path / "x.npy", content[:20], "not what np.save writes")
        out = io.BytesIO()
        np.save(out, np.array([os.getcwd], dtype=object), allow_pickle=True)
        refused(tmp_path / "x.npy", out.getvalue(), "of object")


def test_other_formats_are_refused(tmp_path):
    refused(tmp_path / "x.h5", b"", "suffix is '.h5'; allowed: .npy, .npz, .csv, .p, .pt")


def test_a_huge_file_is_refused_before_it_is_read(tmp_path):
    path = Path(tmp_path / "x.p")
    with path.open("wb") as file:
        file.truncate((1 << 28) + 1)
    with pytest.raises(ArchiveError, match="it has 268435457 bytes, more than 268435456"):
        read_arrays(path)
