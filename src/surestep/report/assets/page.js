// Sorting and filtering. The page is complete without it: this only rearranges rows that are there.
"use strict";

const collator = new Intl.Collator("en", { numeric: true });

function keyOf(row, column, kind) {
  const cell = row.cells[column];
  if (kind === "number") {
    return cell.dataset.key === undefined ? NaN : Number(cell.dataset.key);
  }
  return cell.textContent.trim();
}

// Numbers that are missing come last, whichever way the rest is sorted.
function comparing(column, kind, sign) {
  return (a, b) => {
    const left = keyOf(a, column, kind);
    const right = keyOf(b, column, kind);
    if (kind === "text") {
      return sign * collator.compare(left, right);
    }
    if (Number.isNaN(left) || Number.isNaN(right)) {
      return Number.isNaN(left) - Number.isNaN(right);
    }
    return sign * (left - right);
  };
}

function sortBy(table, heading, column) {
  const kind = heading.dataset.kind;
  const first = kind === "number" ? "descending" : "ascending";
  const second = kind === "number" ? "ascending" : "descending";
  const order = heading.getAttribute("aria-sort") === first ? second : first;
  for (const other of table.tHead.rows[0].cells) {
    other.removeAttribute("aria-sort");
  }
  heading.setAttribute("aria-sort", order);
  const body = table.tBodies[0];
  const rows = [...body.rows].sort(comparing(column, kind, order === "ascending" ? 1 : -1));
  body.replaceChildren(...rows);
  table.dispatchEvent(new Event("sorted"));
}

for (const table of document.querySelectorAll("table[data-sortable]")) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, heading, column));
    heading.append(button);
  });
}

const FEW = 12, STEP = 100; // rows: from FEW on a table is searched, and STEP are shown at once

for (const table of document.querySelectorAll("table[data-sortable]")) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length <= FEW) continue;
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const bar = document.createElement("div");
  const wanted = document.createElement("input");
  const more = document.createElement("button");
  const matches = document.createElement("span");
  bar.className = "filter";
  wanted.type = "search";
  wanted.placeholder = "Search";
  wanted.setAttribute("aria-label", "Search in this table");
  matches.setAttribute("role", "status");
  more.type = "button";
  more.textContent = "Show more rows";
  bar.append(wanted, matches, more);
  table.parentElement.before(bar);
  let most = STEP;
  const apply = () => {
    const words = wanted.value.toLowerCase().split(/\s+/).filter(Boolean);
    let fitting = 0;
    for (const row of table.tBodies[0].rows) {
      const fits = words.every((word) => texts.get(row).includes(word));
      fitting += fits;
      row.hidden = !fits || fitting > most;
    }
    matches.textContent = `${Math.min(fitting, most)} of ${texts.size} rows`;
    more.hidden = fitting <= most;
  };
  wanted.addEventListener("input", apply);
  table.addEventListener("sorted", apply);
  more.addEventListener("click", () => {
    most *= 10;
    apply();
  });
  apply();
}
