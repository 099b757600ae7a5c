"use strict";
// Tables sort by the column whose heading is chosen; a link into a folded part opens it. The page reads well without.
const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
function number(text) {
  const plain = text.trim().replace(/−/g, "-").replace(/×10([⁻⁰-⁹¹²³]+)/, (all, power) =>
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
function sort(table, heading) {
  const column = heading.cellIndex, body = table.tBodies[0];
  const up = heading.getAttribute("aria-sort") !== "ascending";
  for (const other of heading.parentNode.cells) other.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = [...body.rows].sort((a, b) =>
    compare(a.cells[column].textContent, b.cells[column].textContent, up ? 1 : -1));
  body.append(...rows);
}
for (const table of document.querySelectorAll("table.sortable")) {
  for (const heading of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(table, heading));
    heading.append(button);
    heading.setAttribute("aria-sort", "none");
  }
}
function reveal() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let part = place; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  if (place) (place.closest("details.claim") || place).scrollIntoView();
}
addEventListener("hashchange", reveal);
addEventListener("beforeprint", () => document.querySelectorAll("details.claim").forEach((one) => (one.open = true)));
reveal();
