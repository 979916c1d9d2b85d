import json

import pytest

from focalcal.config import titles

LOGITS = {"my-model": {}, "other": {}}


@pytest.mark.parametrize(
    ("config", "overlays", "title"),
    [
        ({"runs": [1], "report": {}}, [], titles.DEFAULT_TITLE),
        ({"runs": [1], "report": {}}, ["a.yaml", "configs/my study.yaml"], "my study"),
        ({"runs": [1], "report": {"title": "Said"}}, ["a.yaml"], "Said"),
        ({"runs": [], "logits": LOGITS, "report": {}}, [], "my-model, other"),
        ({"runs": [], "logits": LOGITS, "report": {}}, ["a.yaml"], "a"),
        ({"runs": [], "logits": LOGITS, "published": ["x"], "report": {}}, [], titles.DEFAULT_TITLE),
        ({"runs": [], "logits": {"x" * 300: {}}, "report": {}}, [], "x" * 120),
    ],
)
def test_title_comes_from_the_configuration(config, overlays, title):
    titles.fill_in(config, overlays)
    assert config["report"]["title"] == title


@pytest.fixture
def report(tmp_path):
    (tmp_path / "report.html").touch()
    (tmp_path / "config.json").write_text(json.dumps({"report": {"title": "A"}}), encoding="utf-8")
    return tmp_path / "report.html"


def test_a_report_of_another_title_is_announced_in_one_line(report):
    line = titles.replacement(report, {"report": {"title": "B"}})
    assert line == (
        f'{report} and the tables and figures beside it are about "A"; the report of "B" replaces them; '
        "to keep both, use another folder: --directory FOLDER\n"
    )
