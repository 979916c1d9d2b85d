"""What mkdocs needs beyond docs/: pages from elsewhere in the project, and files that pages link to.

In the project, links are paths between files. Here each becomes the path between the same files of the site.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contribute.md",
    "CHANGELOG.md": "changelog.md",
    "focalcal/data/networks/README.md": "networks.md",
    "results/README.md": "results.md",
}
"""Pages outside docs/ by their path in the project, with their path in the site."""
REPORT = "report.html"
SHIM, SEARCH = "https://unpkg.com/iframe-worker/shim", "assets/search-in-files.js"
"""What the theme loads from elsewhere to search in files, and what does the same here."""
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages, the files they link to, lists of linked folders, and the report as an example."""
    texts = {path: (ROOT / path).read_text("utf-8") for path in PAGES}
    for path, text in texts.items():
        files.append(File.generated(config, PAGES[path], content=_relinked(text, path)))
    texts |= {f"docs/{page.src_uri}": page.content_string for page in files.documentation_pages()}
    for path, text in texts.items():
        for link in LINK.findall(text):
            _add(_target(path, link), files, config)
    script = Path(__file__).with_name("website_search.js")
    files.append(File.generated(config, SEARCH, abs_src_path=str(script)))
    example = "`make demo`, then `make site`: the report of the default configuration is then here."
    if (ROOT / "results" / REPORT).exists():
        files.append(File.generated(config, REPORT, abs_src_path=str(ROOT / "results" / REPORT)))
        example = f"[The report of the default configuration]({REPORT}): one file, as every study makes it."
    files.append(File.generated(config, "example-report.md", content=f"# An example report\n\n{example}\n"))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page of docs/ with its links as those of the site."""
    return markdown if page.file.generated_by else _relinked(markdown, f"docs/{page.file.src_uri}")


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Return the HTML of a page that asks for nothing from elsewhere."""
    return output.replace(SHIM, posixpath.relpath(SEARCH, posixpath.dirname(page.url) or "."))


def on_post_template(output_content: str, **_: Any) -> str:
    """Return the HTML of the page for addresses that do not exist."""
    return output_content.replace(SHIM, SEARCH)


def _add(target: str, files: Files, config: Any) -> None:
    """Add what a link leads to if it is no file of docs/: a file from elsewhere, or the list of a folder."""
    path, place = ROOT / target, _place(target)
    if files.get_file_from_path(place) is not None or not path.exists():
        return
    if path.is_dir():
        names = sorted(one.name for one in path.iterdir() if one.is_file())
        content = f"# {path.name}\n\n" + "".join(f"- [{name}]({name})\n" for name in names)
        hidden = InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, place, content=content, inclusion=hidden))
    else:
        files.append(File.generated(config, place, abs_src_path=str(path)))


def _relinked(text: str, path: str) -> str:
    """Return the text of a page at a path of the project with its links as those of the site."""
    here = posixpath.dirname(_place(path))
    return LINK.sub(lambda found: posixpath.relpath(_place(_target(path, found[1])), here or "."), text)


def _target(path: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))


def _place(target: str) -> str:
    """Return where a file or folder of the project is in the site."""
    if target in PAGES:
        return PAGES[target]
    inside = target.startswith("docs/")
    place = target.removeprefix("docs/") if inside else f"files/{target}"
    return f"{place}/index.md" if (ROOT / target).is_dir() else place
