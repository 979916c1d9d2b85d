"""Charts in the report."""

import json

from focalcal.reporting.report.embedded import read_chart


def test_a_chart_in_the_report_cannot_end_its_element(tmp_path):
    path = tmp_path / "made.json"
    path.write_text(json.dumps({"data": {"values": [{"a": "</script>"}]}, "mark": "point", "encoding": {}}))
    assert "<" not in read_chart(path)
    assert "</script>" in json.dumps(json.loads(read_chart(path)))
    path.write_text("null")
    assert read_chart(path) is None
