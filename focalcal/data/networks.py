"""Networks whose logits other people published, by collection. Standard library only.

There is one TOML file per collection in the folder `networks/`, with the shipped logits beside it. A
collection with a `base` address is fetched instead.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NETWORKS_FOLDER = Path(__file__).resolve().parent / "networks"


@dataclass(frozen=True)
class Network:
    """One network of a collection: which run its logits stand for, and where they are."""

    collection: str
    dataset: str
    model: str
    loss: str
    seed: int
    files: tuple[dict[str, Any], ...]
    """The original arrays: name, size in bytes and checksum of the .npy file of each."""
    base: str | None
    """Address of the folder that serves the files; None if the logits are shipped."""

    @property
    def name(self) -> str:
        """Return a name that no other network has."""
        return f"{self.collection}/{self.model}-{self.loss}"

    @property
    def shipped_file(self) -> Path:
        """Return where the logits are, or would be if they were shipped."""
        return NETWORKS_FOLDER / f"{self.dataset}-{self.model}-{self.loss}.npz"

    @property
    def spec(self) -> dict[str, Any]:
        """Return everything that determines the logits: what they stand for, and their checksums."""
        identity = {key: getattr(self, key) for key in ("name", "dataset", "model", "loss", "seed")}
        return {**identity, "checksums": {file["name"]: file["checksum"] for file in self.files}}


def collection_names() -> list[str]:
    """Return the names of all collections."""
    return sorted(file.stem for file in NETWORKS_FOLDER.glob("*.toml"))


def networks_of(collection: str) -> list[Network]:
    """Return the networks of a collection, in the order of its file."""
    entry = tomllib.loads((NETWORKS_FOLDER / f"{collection}.toml").read_text("utf-8"))
    base = entry.get("base")
    return [
        Network(
            collection,
            entry["dataset"],
            network["model"],
            network["loss"],
            entry["seed"],
            tuple(network["files"]),
            base and f"{base}{network['origin']}/",
        )
        for network in entry["networks"]
    ]


def find_network(name: str) -> Network:
    """Return the network of that name."""
    collection, _, _ = name.partition("/")
    return next(network for network in networks_of(collection) if network.name == name)
