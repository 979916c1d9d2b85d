"""The report in a real browser: quiet, offline, complete, sortable, usable at desk and phone width."""

import pytest

from focalcal.calibration.catalogue import METRICS
from tests.e2e.conftest import ARTEFACTS, FAILED

PAGES = ["calibrator", "loss", "papers", "run"]
WIDTHS = [1280, 390]
SCREEN = 900
DRAWN = "document.querySelector('#chart-{}').classList.contains('drawn')"
RUNS_BOX = "document.querySelector('#table-runs').closest('.table-box')"

pytestmark = pytest.mark.slow


def address(report, page="calibrator"):
    return f"{report.as_uri()}#{page}"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True])
def test_pages_are_quiet_offline_and_fit(browser, report, width, dark):
    for page in PAGES:
        browser.open(address(report, page), width, dark=dark)
        shown = browser.evaluate(
            "[...document.querySelectorAll('.page')].filter(p => p.offsetHeight).map(p => p.id)"
        )
        assert shown == [page]
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert browser.evaluate("window.scrollY") == 0
        if width == max(WIDTHS):
            assert browser.evaluate("document.documentElement.scrollHeight") <= 4 * SCREEN, page
        name = f"{page}-{width}-{'dark' if dark else 'light'}.png"
        browser.screenshot(ARTEFACTS / name)
        assert browser.problems() == []
        assert browser.requests() == [report.as_uri()]


def test_nothing_refers_to_another_file(report):
    text = report.read_text(encoding="utf-8")
    # Vega's own script names the addresses of XML namespaces and of its editor; it may ask for nothing.
    assert "default-src 'none'" in text
    page, runtime, _ = text.rsplit("<script>", 2)[0], *text.rsplit("<script>", 2)[1:]
    for outside in ("http://", "https://", 'src="/', "@import", "url("):
        assert outside not in page.replace("http-equiv", ""), outside
    assert "https://" not in runtime
    assert len(text) < 6e6


def test_every_link_leads_somewhere(browser, report):
    browser.open(address(report), 1400)
    broken = browser.evaluate(
        "[...document.querySelectorAll('a[href]:not(.vega-actions a)')].map(a => a.getAttribute('href'))"
        ".filter(h => !h.startsWith('#') || !document.getElementById(h.slice(1)))"
    )
    assert broken == []
    assert browser.evaluate("document.querySelectorAll('a[href]').length") > 30


@pytest.mark.parametrize("width", WIDTHS)
def test_every_figure_can_be_seen(browser, report, width):
    browser.open(address(report), width)
    seen = browser.evaluate(
        """(async () => {
          const seen = [];
          document.querySelectorAll('details').forEach((fold) => { fold.open = true; });
          for (const page of document.querySelectorAll('.page')) {
            location.hash = page.id;
            await new Promise((done) => setTimeout(done, 30));
            const selects = [...page.querySelectorAll('.dataset-models select')];
            const most = Math.max(1, ...selects.map((s) => s.options.length));
            for (let i = 0; i < most; i += 1) {
              for (const select of selects) {
                select.selectedIndex = Math.min(i, select.options.length - 1);
                select.dispatchEvent(new Event('change'));
              }
              for (const image of page.querySelectorAll('figure img')) {
                if (image.closest('[hidden]')) continue;
                await image.decode();
                const large = image.offsetWidth > 100 && image.naturalWidth > 100;
                if (large) seen.push(image.closest('figure').id);
              }
            }
          }
          return [...new Set(seen)].sort();
        })()"""
    )
    figures = "[...document.querySelectorAll('figure:not(.chart)')].map(f => f.id)"
    assert seen == sorted(browser.evaluate(figures))
    assert {"figure-losses_compared", "figure-reliability-1", "figure-training-0"} <= set(seen)


def test_a_choice_of_dataset_and_model_holds_for_every_figure(browser, report):
    browser.open(address(report, "figures/reliability"), 1400)
    chosen = "[...new Set([...document.querySelectorAll('.dataset-models select')].map(s => s.value))]"
    assert browser.evaluate(chosen) == ["0"]
    browser.evaluate(
        "(() => { const s = document.querySelector('.page.current .dataset-models select');"
        "s.selectedIndex = 1; s.dispatchEvent(new Event('change')); })()"
    )
    shown = "[...document.querySelectorAll('[data-dataset-model]')].filter(p => p.offsetHeight)"
    assert browser.evaluate(f"[...new Set({shown}.map(p => p.dataset.datasetModel))]") == ["1"]


def test_tables_sort_by_value(browser, report):
    browser.open(address(report, "tables/overview"), 1400)
    column = (
        "[...document.querySelectorAll('#table-overview tbody tr')].map(r => Number(r.cells[4].dataset.v))"
    )
    button = "document.querySelectorAll('#table-overview thead tr:last-child th')[4].querySelector('button')"
    before = browser.evaluate(column)
    browser.evaluate(f"{button}.click()")
    assert browser.evaluate(f"{button}.parentElement.getAttribute('aria-sort')") == "ascending"
    assert browser.evaluate(column) == sorted(before)
    browser.evaluate(f"{button}.click()")
    assert browser.evaluate(column) == sorted(before, reverse=True)
    browser.evaluate(f"{button}.click()")
    assert browser.evaluate(column) == before


def test_tables_filter_by_words_and_show_the_rest_when_asked(browser, report):
    browser.open(address(report, "table-runs"), 1400)
    rows = "document.querySelectorAll('#table-runs tbody tr').length"
    assert browser.evaluate(rows) == 60
    browser.evaluate(f"{RUNS_BOX}.querySelector('.tools button').click()")
    assert browser.evaluate(rows) == 70
    browser.evaluate(
        f"(() => {{ const i = {RUNS_BOX}.querySelector('input');"
        "i.value = 'gauss-3 diverged'; i.dispatchEvent(new Event('input')); })()"
    )
    assert browser.evaluate(rows) == 1
    assert "diverged" in browser.evaluate("document.querySelector('#table-runs tbody').textContent")


def test_claims_show_one_verdict_when_asked(browser, report):
    browser.open(address(report, "papers"), 1400)
    badges = "[...document.querySelectorAll('#table-claims tbody .badge')]"
    verdicts = f"[...new Set({badges}.map(b => b.dataset.verdict))]"
    assert len(browser.evaluate(verdicts)) > 1
    browser.evaluate("document.querySelector('.legend [data-verdict=reproduced]').click()")
    assert browser.evaluate(verdicts) == ["reproduced"]


def test_failed_runs_are_in_plain_sight(browser, report):
    browser.open(address(report), 390)
    text = browser.evaluate("document.querySelector('#calibrator .alert').innerText")
    assert "1 of 70 runs failed" in text
    assert FAILED in text
    assert "<b>" in text, "a message must be shown as text, not as HTML"
    assert "1 failed or missing" in browser.evaluate("document.querySelector('nav').innerText")


def test_figures_enlarge_by_keyboard(browser, report):
    browser.open(address(report, "figures/losses_compared"), 1400)
    browser.evaluate("document.querySelector('#figure-losses_compared .zoom').focus()")
    browser.press("Enter", "Enter", "\r")
    browser.wait("document.getElementById('viewer').open")
    browser.wait("document.querySelector('#viewer img').offsetWidth > 500")
    width = browser.evaluate("document.querySelector('#viewer img').offsetWidth")
    browser.evaluate("document.getElementById('larger').click()")
    browser.wait(f"document.querySelector('#viewer img').offsetWidth > {width}")
    browser.screenshot(ARTEFACTS / "enlarged-1400-light.png")
    assert browser.evaluate("document.querySelector('#viewer img').offsetWidth") > width
    browser.press("Escape", "Escape")
    browser.wait("!document.getElementById('viewer').open")
    returned = "document.activeElement === document.querySelector('#figure-losses_compared .zoom')"
    assert browser.evaluate(returned), "closing gives the keyboard back to the figure"


def test_keyboard_reaches_the_pages_in_order(browser, report):
    browser.open(report.as_uri(), 1400)
    reached = []
    for _ in range(12):
        browser.press("Tab", "Tab")
        reached.append(
            browser.evaluate("document.activeElement.getAttribute('href') || document.activeElement.id")
        )
    assert reached[0] == "#main"
    assert [f"#{page}" for page in PAGES] == [
        href for href in reached if href.startswith("#") and href != "#main"
    ][: len(PAGES)]


@pytest.mark.parametrize("name", ["answer-0", "claims", "best_losses"])
def test_tables_that_answer_are_not_cut(browser, report, name):
    browser.open(address(report, f"table-{name}"), 1280)
    box = f"document.querySelector('#table-{name}').closest('.scroll')"
    assert browser.evaluate(f"{box}.clientWidth") > 900
    assert browser.evaluate(f"{box}.scrollWidth - {box}.clientWidth") == 0


def test_a_wide_table_says_so_and_keeps_its_first_columns_in_sight(browser, report):
    browser.open(address(report, "tables/scores"), 1280)
    frame = "document.querySelector('#table-scores').closest('.frame')"
    heads = (
        "[...document.querySelectorAll('#table-scores thead tr:last-child th')]"
        ".filter(h => h.offsetWidth).length"
    )
    assert browser.evaluate(heads) == 12
    browser.evaluate(
        "[...document.getElementById('tables/scores').querySelectorAll('.tools button')]"
        ".find(b => /columns/.test(b.textContent)).click()"
    )
    assert browser.evaluate(heads) > 12
    browser.wait(f"{frame}.classList.contains('more')")
    cells = "[...document.querySelectorAll('#table-scores tbody tr:first-child td')]"
    before = browser.evaluate(f"{cells}.slice(0, 3).map(c => c.getBoundingClientRect().left)")
    browser.evaluate(f"{frame}.querySelector('.scroll').scrollLeft = 10000")
    browser.wait(f"!{frame}.classList.contains('more')")
    after = browser.evaluate(f"{cells}.slice(0, 3).map(c => c.getBoundingClientRect().left)")
    assert after == pytest.approx(before, abs=2)
    assert browser.evaluate(f"{cells}[4].getBoundingClientRect().left") < before[1]


def test_the_first_page_begins_with_a_chart_that_is_there_in_a_second(browser, report):
    browser.open(address(report), 1280)
    browser.wait(DRAWN.format("calibrators_ranked"))
    first = browser.evaluate("document.querySelector('#calibrator figure').id")
    assert first == "chart-calibrators_ranked"
    assert browser.evaluate(
        "document.querySelector('#calibrator figure').getBoundingClientRect().top < "
        "document.querySelector('#calibrator .answer').getBoundingClientRect().top"
    )
    waited = browser.evaluate(
        "performance.getEntriesByName('chart-calibrators_ranked')[0].startTime"
        " - performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
    )
    assert waited < 1000
    assert browser.problems() == []


@pytest.mark.parametrize("width", WIDTHS)
def test_a_chart_fits_the_page_and_names_its_parts_for_screen_readers(browser, report, width):
    browser.open(address(report, "charts/difference_by_network"), width)
    browser.wait(DRAWN.format("difference_by_network"))
    chart = "document.querySelector('#chart-difference_by_network')"
    assert browser.evaluate(f"{chart}.querySelector('svg.marks').getBoundingClientRect().right") <= width
    assert browser.evaluate(f"{chart}.querySelectorAll('path[aria-label]').length") >= 10
    assert browser.evaluate(f"{chart}.querySelector('summary').getAttribute('aria-label')")
    unnamed = (
        f"[...{chart}.querySelectorAll('[role=graphics-symbol]')].filter(m => !m.getAttribute('aria-label'))"
    )
    assert browser.evaluate(f"{unnamed}.length") == 0


def test_paper_has_what_is_closed_on_the_screen(browser, report):
    browser.open(address(report), 1280)
    opened = "[...document.querySelectorAll('details.block')].filter(d => d.open).length"
    before = browser.evaluate(opened)
    browser.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.evaluate(opened) == browser.evaluate("document.querySelectorAll('details.block').length")
    browser.wait("[...document.querySelectorAll('.chart')].every(c => c.classList.contains('drawn'))")
    browser.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert browser.evaluate(opened) == before


def choose(browser, chart, name, value):
    """Choose a value in a menu of a chart, as the keyboard does."""
    done = browser.evaluate(
        f"""(() => {{
          const labels = [...document.querySelectorAll('#chart-{chart} .choices label')];
          const menu = labels.find(l => l.textContent.trim().startsWith('{name}')).querySelector('select');
          menu.selectedIndex = [...menu.options].findIndex(o => o.text === '{value}');
          menu.dispatchEvent(new Event('input', {{bubbles: true}}));
          menu.dispatchEvent(new Event('change', {{bubbles: true}}));
          return menu.selectedIndex;
        }})()"""
    )
    assert done >= 0


def test_the_choices_of_a_chart_filter_its_table(browser, report):
    browser.open(address(report, "charts/score_explorer"), 1280)
    browser.wait(DRAWN.format("score_explorer"))
    choose(browser, "score_explorer", "Dataset", "gauss-3")
    choose(browser, "score_explorer", "Metric", "Brier score")
    browser.evaluate("document.getElementById('tables/scores').open = true")
    rows = "[...document.querySelectorAll('#table-scores tbody tr')]"
    browser.wait(f"{rows}.every(r => r.cells[0].textContent === 'gauss-3')")
    heads = "[...document.querySelectorAll('#table-scores thead tr:last-child th')]"
    shown = browser.evaluate(f"{heads}.filter(h => h.offsetWidth).map(h => h.textContent)")
    assert shown == ["Dataset", "Model", "Training loss", "Calibrator", "Fitted by", "n", "Brier score"]
    choose(browser, "score_explorer", "Dataset", "all")
    browser.wait(f"new Set({rows}.map(r => r.cells[0].textContent)).size === 2")


def test_what_would_leave_a_chart_empty_cannot_be_chosen(browser, report):
    browser.open(address(report, "charts/score_explorer"), 1280)
    browser.wait(DRAWN.format("score_explorer"))
    menus = "[...document.querySelectorAll('#chart-score_explorer .choices select')]"
    points = "document.querySelectorAll('#chart-score_explorer path[aria-label]').length"
    choose(browser, "score_explorer", "Dataset", "gauss-3")
    refused = f"{menus}.flatMap(m => [...m.options].filter(o => o.disabled).map(o => o.text))"
    browser.wait(f"{refused}.length > 0")
    assert browser.evaluate(refused) == ["FLSD-53", "Brier"]
    for loss in ("Cross-entropy", "Focal \N{GREEK SMALL LETTER GAMMA} = 5"):
        choose(browser, "score_explorer", "Training loss", loss)
        browser.wait(f"{points} > 0")
    choose(browser, "score_explorer", "Training loss", "all")
    choose(browser, "score_explorer", "Dataset", "all")
    browser.wait(f"{refused}.length === 0")


def test_every_metric_and_calibrator_can_be_chosen(browser, report):
    browser.open(address(report, "charts/score_explorer"), 1280)
    browser.wait(DRAWN.format("score_explorer"))
    options = (
        "[...document.querySelectorAll('#chart-score_explorer .choices label')]"
        ".find(l => l.textContent.trim().startsWith('Metric')).querySelectorAll('option').length"
    )
    assert browser.evaluate(options) == len(METRICS)


def test_files_are_saved_as_they_were_written(browser, report):
    browser.open(address(report, "tables/arena"), 1280)
    saved = browser.evaluate(
        """(async () => {
          const made = [];
          const original = URL.createObjectURL;
          URL.createObjectURL = (blob) => { made.push(blob); return original(blob); };
          document.querySelector('[data-file="arena.csv"]').click();
          document.querySelector('[data-file="arena.tex"]').click();
          while (made.length < 2) await new Promise((done) => setTimeout(done, 20));
          return Promise.all(made.map((blob) => blob.text()));
        })()"""
    )
    tables = report.parent / "tables"
    assert sorted(saved) == sorted(
        (tables / f"arena.{suffix}").read_text("utf-8") for suffix in ("csv", "tex")
    )
