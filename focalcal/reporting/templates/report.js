"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  document.documentElement.classList.add("js");

  // Pages: the address's fragment names a page, or something on a page.
  const pages = all(".page");
  const show = (moveFocus) => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let fold = target && target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    const page = (target && target.closest(".page")) || pages[0];
    pages.forEach((other) => other.classList.toggle("current", other === page));
    all("nav a").forEach((link) => {
      if (link.hash === "#" + page.id) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
    const current = document.querySelector("nav a[aria-current]");
    current.parentElement.scrollLeft = current.offsetLeft - 40;
    if (target && target !== page) target.scrollIntoView();
    else window.scrollTo(0, 0);
    if (moveFocus) page.querySelector("h2").focus({ preventScroll: true });
  };
  window.addEventListener("hashchange", () => show(true));

  // Tables: sort by a press on a heading, filter by words, show many rows only when asked.
  const FIRST_ROWS = 60, FEW_ROWS = 6, FIRST_COLUMNS = 12;
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return "";
    return cell.dataset.v !== undefined && cell.dataset.v !== "" ? Number(cell.dataset.v) : cell.textContent.trim();
  };
  const compare = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  };
  const saveBlob = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const enhance = (table) => {
    const groups = all("tbody", table).map((body) => [...body.rows]);
    const rows = groups.flat();
    if (rows.length < 2) return;
    const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    const state = { column: -1, direction: 1, words: [], limit: FIRST_ROWS, verdict: "", chosen: [] };
    const box = table.closest(".table-box");
    const tools = document.createElement("div");
    tools.className = "tools";
    const label = document.createElement("label");
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = "words, in any order";
    label.append("Filter ", input);
    const count = document.createElement("span");
    count.setAttribute("role", "status");
    const more = document.createElement("button");
    more.type = "button";
    tools.append(label, count, more);
    label.hidden = rows.length <= FEW_ROWS;
    box.prepend(tools);
    // An empty cell depends on no choice.
    const keep = (row) => state.words.every((word) => texts.get(row).includes(word)) &&
      state.chosen.every(([column, text]) => ["", text].includes(row.cells[column].textContent.trim())) &&
      (!state.verdict || row.querySelector(".badge").dataset.verdict === state.verdict);
    const choices = table.id === "table-claims" ? all(".legend button") : [];
    choices.forEach((button) => button.addEventListener("click", () => {
      state.verdict = state.verdict === button.dataset.verdict ? "" : button.dataset.verdict;
      choices.forEach((other) => other.setAttribute("aria-pressed", String(other.dataset.verdict === state.verdict)));
      draw();
    }));
    const sorted = () => {
      if (state.column < 0) return groups;
      const order = (a, b) => {
        const [x, y] = [keyOf(a, state.column), keyOf(b, state.column)];
        return x === "" || y === "" ? compare(x, y) : state.direction * compare(x, y);
      };
      return [[...rows].sort(order)];
    };
    const draw = () => {
      all("tbody", table).forEach((body) => body.remove());
      let shown = 0, matching = 0;
      for (const group of sorted()) {
        const body = document.createElement("tbody");
        for (const row of group) {
          if (!keep(row)) continue;
          matching += 1;
          if (shown < state.limit) { body.append(row); shown += 1; }
        }
        if (body.rows.length) table.append(body);
      }
      count.textContent = shown < matching || matching < rows.length ? `${shown} of ${rows.length} rows` : `${rows.length} rows`;
      more.hidden = shown === matching;
      more.textContent = `Show all ${matching}`;
    };
    input.addEventListener("input", () => { state.words = input.value.toLowerCase().split(/\s+/).filter(Boolean); draw(); });
    more.addEventListener("click", () => { state.limit = Infinity; draw(); });
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    // Columns after the twelfth wait until asked for; headings over several columns stay whole.
    const spans = table.tHead.rows.length > 1 ? [...table.tHead.rows[0].cells] : heads;
    let cut = 0;
    for (const span of spans) { if (cut + span.colSpan > FIRST_COLUMNS) break; cut += span.colSpan; }
    let unfold = () => {};
    if (cut && heads.length > FIRST_COLUMNS) {
      [table.tHead.rows[0], table.tHead.rows[table.tHead.rows.length - 1], ...rows].forEach((row) => {
        let start = 0;
        [...row.cells].forEach((cell) => { cell.classList.toggle("late", start >= cut); start += cell.colSpan; });
      });
      table.classList.add("folded");
      const wider = Object.assign(document.createElement("button"), { type: "button", textContent: `Show all ${heads.length} columns` });
      unfold = () => { table.classList.remove("folded"); wider.hidden = true; };
      wider.addEventListener("click", unfold);
      tools.append(wider);
    }
    const names = heads.map((head) => head.textContent.trim());
    // What is chosen in a chart: words for columns, and the metric whose column is shown alone.
    table.addEventListener("choose", ({ detail }) => {
      unfold();
      state.chosen = Object.entries(detail).filter(([name, text]) => text !== null && names.includes(name))
        .map(([name, text]) => [names.indexOf(name), text]);
      const metric = names.indexOf(detail.Metric);
      [...rows, table.tHead.rows[0]].forEach((row) => [...row.cells].forEach((cell, column) => {
        cell.hidden = metric >= 0 && heads[column].classList.contains("n") && column !== metric;
      }));
      draw();
    });
    if (!box.parentElement.querySelector("[data-gzip]")) {
      const save = document.createElement("button");
      save.type = "button";
      save.textContent = "Save CSV";
      save.addEventListener("click", () => {
        const quoted = (text) => `"${String(text).replaceAll('"', '""')}"`;
        const lines = [names, ...rows.map((row) => heads.map((_, column) => keyOf(row, column)))];
        saveBlob(new Blob([lines.map((line) => line.map(quoted).join(",")).join("\n") + "\n"]), `${table.id}.csv`);
      });
      tools.append(save);
    }
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const again = state.column === column;
        if (again && state.direction === -1) state.column = -1;
        else { state.direction = again ? -1 : 1; state.column = column; }
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        if (state.column >= 0) head.setAttribute("aria-sort", state.direction > 0 ? "ascending" : "descending");
        draw();
      });
    });
    draw();
  };
  all("table.data").forEach(enhance);

  // Wide tables: first columns stay in sight, and a shade says that there is more to the right.
  const settle = (scroll) => {
    const table = scroll.querySelector("table");
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    let left = 0;
    heads.slice(0, Number(table.dataset.sticky)).forEach((head, column) => {
      table.style.setProperty(`--left-${column + 1}`, `${left}px`);
      left += head.offsetWidth;
    });
    const rest = scroll.scrollWidth - scroll.clientWidth - scroll.scrollLeft;
    scroll.parentElement.classList.toggle("more", rest > 2);
  };
  const resized = new ResizeObserver((entries) => entries.forEach((entry) => settle(entry.target)));
  all(".scroll").forEach((scroll) => {
    resized.observe(scroll);
    scroll.addEventListener("scroll", () => settle(scroll), { passive: true });
  });

  // Files that stand in the report.
  all("[data-gzip]").forEach((button) => button.addEventListener("click", async () => {
    const bytes = Uint8Array.from(atob(button.dataset.gzip), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    saveBlob(await new Response(stream).blob(), button.dataset.file);
  }));
  all("[data-image]").forEach((button) => button.addEventListener("click", () => {
    const image = button.closest("figure").querySelector("img");
    const canvas = Object.assign(document.createElement("canvas"), { width: image.naturalWidth, height: image.naturalHeight });
    canvas.getContext("2d").drawImage(image, 0, 0);
    canvas.toBlob((blob) => saveBlob(blob, button.dataset.image));
  }));

  // Charts: Vega draws one when it comes into view. Its choices are called like columns of its table.
  const drawChart = async (figure) => {
    if (figure.classList.contains("begun")) return;
    figure.classList.add("begun");
    const specification = JSON.parse(figure.querySelector("script").textContent);
    const menus = specification.signals.filter((signal) => signal.bind);
    const actions = { export: true, source: false, compiled: false, editor: false };
    const { view } = await window.vegaEmbed(figure.querySelector(".canvas"), specification,
      { mode: "vega", renderer: "svg", actions, downloadFileName: figure.id, bind: figure.querySelector(".choices") });
    figure.querySelector("summary").setAttribute("aria-label", "Save the chart");
    figure.querySelector("svg.marks").setAttribute("aria-label", figure.getAttribute("aria-label"));
    const table = document.getElementById(figure.dataset.table);
    const rows = specification.data.map((source) => view.data(source.name)).reduce((most, data) => (data.length > most.length ? data : most), []);
    // A row belongs to a choice if it has its text, or none; a choice of another kind names the column that must be filled.
    const has = (row, name, value) => value === null || (name in row ? ["", value].includes(row[name]) : row[value] !== "");
    const chosen = () => Object.fromEntries(menus.map((menu) => [menu.bind.name, view.signal(menu.name)]));
    // What would leave the chart empty cannot be chosen.
    const offer = () => menus.forEach(({ bind }, number) => {
      const others = Object.entries(chosen()).filter(([name]) => name !== bind.name);
      const left = rows.filter((row) => others.every(([name, value]) => has(row, name, value)));
      const select = all(".choices select", figure)[number];
      bind.options.forEach((value, place) => { select.options[place].disabled = !left.some((row) => has(row, bind.name, value)); });
    });
    const choose = () => {
      offer();
      if (table) table.dispatchEvent(new CustomEvent("choose", { detail: chosen() }));
    };
    menus.forEach((menu) => view.addSignalListener(menu.name, choose));
    offer();
    figure.classList.add("drawn");
    performance.mark(figure.id);
  };
  window.drawCharts = () => {
    const seen = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
      seen.unobserve(entry.target);
      drawChart(entry.target);
    }), { rootMargin: "2000px" });
    all(".chart").forEach((figure) => seen.observe(figure));
  };

  // On paper everything is open, and what was closed closes again.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    closed.forEach((fold) => { fold.open = true; });
    all(".chart").forEach(drawChart);
    window.dispatchEvent(new Event("resize"));
  });
  window.addEventListener("afterprint", () => closed.forEach((fold) => { fold.open = false; }));

  // Tables and figures of one dataset and model at a time; a choice for one holds for all.
  const choose = (name) => all(".dataset-models").forEach((block) => {
    const select = block.querySelector("select");
    const option = [...select.options].find((candidate) => candidate.text === name);
    if (option) select.value = option.value;
    all("[data-dataset-model]", block).forEach((part) => { part.hidden = part.dataset.datasetModel !== select.value; });
  });
  all(".dataset-models select").forEach((select) => {
    if (select.options.length === 1) select.disabled = true;
    select.addEventListener("change", () => choose(select.selectedOptions[0].text));
  });
  choose("");

  // Enlarged figures.
  const viewer = document.getElementById("viewer");
  const large = viewer.querySelector("img");
  let scale = 1;
  const resize = () => { large.style.width = `${Math.round(large.naturalWidth * scale)}px`; };
  all(".zoom").forEach((button) => button.addEventListener("click", () => {
    const image = button.querySelector("img");
    large.src = image.src;
    large.alt = image.alt;
    large.style.filter = getComputedStyle(image).filter;
    viewer.showModal();
    large.decode().then(() => { scale = Math.max(0.5, Math.min(1, (window.innerWidth - 60) / large.naturalWidth)); resize(); });
  }));
  document.getElementById("larger").addEventListener("click", () => { scale = Math.min(4, scale * 1.25); resize(); });
  document.getElementById("smaller").addEventListener("click", () => { scale = Math.max(0.2, scale / 1.25); resize(); });
  viewer.addEventListener("click", (event) => { if (event.target === viewer) viewer.close(); });

  // Light, dark, or what the system says.
  const themes = ["automatic", "light", "dark"];
  const button = document.getElementById("theme");
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "automatic") + 1) % 3];
    if (next === "automatic") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    button.textContent = `Theme: ${next}`;
  });
  show(false);
})();
