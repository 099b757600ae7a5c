"use strict";
// Folded parts are filled when they open; tables sort and filter; points say their values. The page reads well without.
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const SHOWN = 100;
function number(text) {
  const plain = text.trim().replace(/−/g, "-").replace(/×10([⁻⁰-⁹¹²³]+)/, (whole, power) =>
    "e" + [...power].map((one) => (one === "⁻" ? "-" : digits.indexOf(one))).join(""));
  if (/^-?∞/.test(plain)) return plain[0] === "-" ? -Infinity : Infinity;
  return /^[-+]?\.?\d/.test(plain) ? parseFloat(plain) : NaN;
}
// Numbers before words, whichever way numbers go; equal ones keep their order.
function compare(a, b, sign) {
  const [x, y] = [number(a), number(b)];
  if (Number.isNaN(x) && Number.isNaN(y)) return sign * a.localeCompare(b, "en", { numeric: true });
  return Number.isNaN(x) ? 1 : Number.isNaN(y) ? -1 : x === y ? 0 : x < y ? -sign : sign;
}
function make(tag, text, properties = {}) {
  const element = Object.assign(document.createElement(tag), properties);
  if (text !== undefined) element.textContent = text;
  return element;
}
function headings(row, sort) {
  for (const cell of row.cells) {
    const button = make("button", undefined, { type: "button" });
    button.append(...cell.childNodes);
    button.addEventListener("click", () => {
      const up = cell.getAttribute("aria-sort") !== "ascending";
      for (const other of row.cells) other.setAttribute("aria-sort", "none");
      cell.setAttribute("aria-sort", up ? "ascending" : "descending");
      sort(cell.cellIndex, up ? 1 : -1);
    });
    cell.append(button);
    cell.setAttribute("aria-sort", "none");
  }
}

// --- filters: of all tables that have the column, and of the sections of other experiments
const filters = document.querySelector("form.filters");
const chosen = () => (filters ? Object.fromEntries(new FormData(filters)) : {});
const plainEpsilon = (text) => text.replace(" ▲", "");
function passes(heading, cells, wanted) {
  for (const [name, value] of Object.entries(wanted)) {
    if (!value) continue;
    if (name === "search") {
      if (!cells.join(" ").toLowerCase().includes(value.toLowerCase())) return false;
    } else {
      const place = heading.indexOf(name) >= 0 ? heading.indexOf(name) : heading.indexOf(`claimed ${name}`);
      if (place >= 0 && plainEpsilon(cells[place]) !== value) return false;
    }
  }
  return true;
}
const views = new Set();
function apply() {
  const wanted = chosen();
  for (const view of views) view(wanted);
  for (const part of all("section[data-experiment]")) part.hidden = !!wanted.experiment && part.dataset.experiment !== wanted.experiment;
}
function fixedTable(table) {
  const heading = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const rows = [...table.tBodies[0].rows];
  headings(table.tHead.rows[0], (column, sign) => {
    rows.sort((a, b) => compare(a.cells[column].textContent, b.cells[column].textContent, sign));
    table.tBodies[0].append(...rows);
  });
  const view = (wanted) => rows.forEach((row) => (row.hidden = !passes(heading, [...row.cells].map((cell) => cell.dataset.value ?? cell.textContent), wanted)));
  views.add(view);
  view(chosen());
}

// --- what is packed: text by gzip and base64
async function unpack(script) {
  const bytes = Uint8Array.from(atob(script.textContent), (one) => one.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}
async function packedTable(place) {
  const script = place.querySelector("script");
  const { heading, rows } = JSON.parse(await unpack(script));
  const table = make("table"), body = table.createTBody(), head = table.createTHead().insertRow();
  const caption = table.createCaption(), more = make("button", "", { type: "button", className: "more" });
  const scroll = make("div", undefined, { className: "scroll", tabIndex: 0 });
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", place.dataset.caption);
  for (const name of heading) head.append(make("th", name, { scope: "col" }));
  let limit = SHOWN;
  function view(wanted) {
    const kept = rows.filter((cells) => passes(heading, cells, wanted));
    body.replaceChildren(...kept.slice(0, limit).map((cells) => {
      const row = make("tr", undefined, { className: cells.some((cell) => cell.includes("▲")) ? "exceeds" : "" });
      row.append(...cells.map((cell) => make("td", cell)));
      return row;
    }));
    caption.textContent = `${place.dataset.caption}: ${kept.length} of ${rows.length} rows`;
    more.hidden = kept.length <= limit;
    more.textContent = `Show all ${kept.length} rows`;
  }
  headings(head, (column, sign) => {
    rows.sort((a, b) => compare(a[column], b[column], sign));
    view(chosen());
  });
  more.addEventListener("click", () => ((limit = Infinity), view(chosen())));
  views.add(view);
  view(chosen());
  scroll.append(table);
  place.replaceChildren(scroll, more);
}
async function fill(part) {
  if (part.dataset.filled) return;
  part.dataset.filled = "yes";
  const mine = (one) => one.closest("details") === part;
  for (const template of all("template", part).filter(mine)) {
    const copy = template.content.cloneNode(true);
    template.replaceWith(copy);
  }
  all("table.sortable", part).filter(mine).forEach(fixedTable);
  for (const place of all(".packed", part).filter(mine)) await packedTable(place);
  for (const place of all(".drawing", part).filter((one) => mine(one) && one.querySelector("script"))) {
    place.innerHTML = await unpack(place.querySelector("script"));
    legend(place);
  }
}

// --- figures: a legend that toggles, values where the pointer rests
function legend(root) {
  for (const key of all("[data-key]", root)) {
    const series = all("[data-series]", key.closest("svg")).filter((one) => one.dataset.series === key.dataset.key);
    if (!series.length) continue;
    key.setAttribute("role", "button");
    key.setAttribute("tabindex", "0");
    key.setAttribute("aria-pressed", "true");
    const toggle = () => {
      const on = key.getAttribute("aria-pressed") !== "true";
      key.setAttribute("aria-pressed", on);
      for (const one of series) one.classList.toggle("off", !on);
    };
    key.addEventListener("click", toggle);
    key.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") event.preventDefault(), toggle();
    });
  }
}
const tip = document.getElementById("tip");
function hover(event) {
  const point = event.target.closest("use"), title = point && point.querySelector("title");
  // The browser's own words would come late, and cover these.
  if (title) (point.dataset.said = title.textContent), title.remove();
  tip.hidden = !(point && point.dataset.said);
  if (tip.hidden) return;
  tip.textContent = point.dataset.said;
  const left = Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8);
  Object.assign(tip.style, { left: `${Math.max(8, left)}px`, top: `${event.clientY + 14}px` });
}
addEventListener("pointerover", hover);
addEventListener("pointerdown", hover);
addEventListener("scroll", () => (tip.hidden = true), { passive: true });

// --- claims
const narrow = document.querySelector("form.narrow");
if (narrow) {
  const view = (wanted) => {
    const own = Object.fromEntries(new FormData(narrow));
    let count = 0;
    const claims = all("details.claim");
    for (const claim of claims) {
      const fits = Object.entries(own).every(([name, value]) => !value || claim.dataset[name] === value);
      claim.hidden = !(fits && passes([], [claim.textContent], { search: wanted.search }));
      count += !claim.hidden;
    }
    narrow.querySelector("output").textContent = `${count} of ${claims.length} claims`;
  };
  narrow.addEventListener("input", () => view(chosen()));
  views.add(view);
}

for (const table of all("table.sortable")) fixedTable(table);
for (const part of all("details")) {
  part.addEventListener("toggle", () => part.open && fill(part));
  if (part.open) fill(part);
}
legend(document);
if (filters) {
  filters.addEventListener("input", apply);
  filters.addEventListener("reset", () => setTimeout(apply));
  filters.addEventListener("submit", (event) => event.preventDefault());
}
apply();
addEventListener("click", (event) => {
  if (!event.target.matches("button.copy")) return;
  const code = event.target.parentNode.querySelector("code");
  getSelection().selectAllChildren(code);
  navigator.clipboard?.writeText(code.textContent).then(() => (event.target.textContent = "Copied"), () => {});
});
async function reveal() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let part = place; part; part = part.parentElement) {
    if (part.tagName === "DETAILS") (part.open = true), await fill(part);
  }
  if (place) (place.closest("details.claim") || place).scrollIntoView();
}
addEventListener("hashchange", reveal);
if (innerWidth < 1000) document.querySelector("nav details").open = false;
reveal();
