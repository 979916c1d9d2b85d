"""Networks whose logits are published, by collection. Standard library only.

There is one TOML file per collection in the folder `networks/`; adding a collection is adding a file. Other
people's logits are not in this repository: they are fetched from the address `base`, with checksums. Those of
networks that this project trained lie in the collection's folder.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from focalcal.common.messages import unknown_name

NETWORKS_FOLDER = Path(__file__).resolve().parent / "networks"
HALVES = "halves"
"""How a set without validation samples is split: one half validates and the other tests, then they swap."""


@dataclass(frozen=True)
class Network:
    """One network of a collection: which run its logits stand for, and where they are."""

    collection: str
    dataset: str
    model: str
    loss: str
    seed: int
    files: tuple[dict[str, Any], ...]
    """The original files: name, size in bytes, checksum, and the split if a file holds only one."""
    base: str | None
    """Address of the folder that serves the files; None if they are in `folder`."""
    split: str | None
    """`halves` if there are no validation samples."""
    columns: dict[str, Any] | None
    """Of tables: the column of labels, and the columns of logits by label."""

    @property
    def name(self) -> str:
        """Return a name that no other network has."""
        return f"{self.collection}/{self.model}-{self.loss}"

    @property
    def folder(self) -> Path:
        """Return where the files of a network of this project are."""
        return NETWORKS_FOLDER / self.collection

    @property
    def spec(self) -> dict[str, Any]:
        """Return everything that determines the logits: what they stand for, and their checksums."""
        identity = {key: getattr(self, key) for key in ("name", "dataset", "model", "loss", "seed", "split")}
        return {**identity, "checksums": {file["name"]: file["checksum"] for file in self.files}}


def collection_names() -> list[str]:
    """Return the names of all collections."""
    return sorted(file.stem for file in NETWORKS_FOLDER.glob("*.toml"))


def trained_by_us(collection: str) -> bool:
    """Return whether this project trained the networks of a collection, whose files its folder then has."""
    return (NETWORKS_FOLDER / collection).is_dir()


def collection_title(name: str) -> str:
    """Return what a collection is, in one line."""
    return str(_entry(name)["title"])


def networks_of(name: str) -> list[Network]:
    """Return the networks of a collection, in the order of its file, or the one network of that name.

    An unknown name is a UserError with those that exist.
    """
    collection, _, single = name.partition("/")
    if collection not in collection_names():
        raise unknown_name("config key 'published'", name, collection_names())
    entry = _entry(collection)
    networks = [
        Network(
            collection,
            entry["dataset"],
            network["model"],
            network["loss"],
            network.get("seed", entry["seed"]),
            tuple(network["files"]),
            entry["base"] + (f"{network['origin']}/" if "origin" in network else "")
            if "base" in entry
            else None,
            entry.get("split"),
            entry.get("columns"),
        )
        for network in entry["networks"]
    ]
    found = [network for network in networks if single in {"", network.name.removeprefix(f"{collection}/")}]
    if not found:
        raise unknown_name("config key 'published'", name, [network.name for network in networks])
    return found


def _entry(collection: str) -> dict[str, Any]:
    return _read(NETWORKS_FOLDER / f"{collection}.toml")


@cache
def _read(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text("utf-8"))
