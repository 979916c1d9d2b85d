"""The diagram of the workflow in docs/workflow.md matches the workflow."""

import itertools
import re

from tests.project import ROOT, Project, copy_sources


def arrows(mermaid):
    """Return the arrows of a flowchart as pairs of node names; `a & b --> c` has two."""
    found = set()
    for line in mermaid.splitlines():
        groups = [re.findall(r"\w+", group) for group in line.split("-->")]
        for sources, targets in itertools.pairwise(groups):
            found |= set(itertools.product(sources, targets))
    return found


def without_detours(edges):
    """Return the edges of the transitive reduction of an acyclic graph."""
    following = {source: {b for a, b in edges if a == source} for source, _ in edges}

    def reached(node):
        return {node}.union(*map(reached, following.get(node, ())))

    return {
        (source, target)
        for source, target in edges
        if not any(target in reached(other) for other in following[source] - {target})
    }


def test_the_rule_graph_is_that_of_the_default_configuration_and_a_collection(tmp_path):
    project = Project(tmp_path / "clone")
    copy_sources(project.root)
    project.configure(lambda config: config.update(published=["kull2019-cifar10"]))
    drawn = project.snakemake("--rulegraph", "mermaid-js", "--forceall")
    names = dict(re.findall(r"(id\d+)\[(\w+)\]", drawn))
    rules = {(names[a], names[b]) for a, b in re.findall(r"(id\d+) --> (id\d+)", drawn)}
    page = (ROOT / "docs" / "workflow.md").read_text("utf-8")
    shown = re.search(r"```mermaid\n(.*?)```", page, re.DOTALL)[1]
    assert arrows(shown) == without_detours({edge for edge in rules if "all" not in edge})
