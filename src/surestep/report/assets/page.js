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

const STEP = 100; // rows of a long table that are shown at once

for (const bar of document.querySelectorAll(".filter")) {
  const table = document.getElementById(bar.dataset.table);
  const body = table.tBodies[0];
  const texts = new Map([...body.rows].map((row) => [row, row.textContent.toLowerCase()]));
  const wanted = bar.querySelector("[data-filter=text]");
  const group = bar.querySelector("[data-filter=group]");
  const matches = bar.querySelector(".matches");
  const further = document.querySelector(`.further[data-table=${bar.dataset.table}]`);
  let most = STEP;
  const apply = () => {
    const words = wanted.value.toLowerCase().split(/\s+/).filter(Boolean);
    let fitting = 0;
    for (const row of body.rows) {
      const fits =
        (group.value === "" || row.dataset.group === group.value) &&
        words.every((word) => texts.get(row).includes(word));
      fitting += fits;
      row.hidden = !fits || fitting > most;
    }
    const narrowed = fitting < texts.size && fitting > most;
    const all = narrowed ? `${fitting} matching` : `${texts.size}`;
    matches.textContent = `${Math.min(fitting, most)} of ${all} rows shown`;
    further.hidden = fitting <= most;
  };
  wanted.addEventListener("input", apply);
  group.addEventListener("change", apply);
  table.addEventListener("sorted", apply);
  for (const button of further.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      most = button.dataset.further === "all" ? Infinity : most + STEP;
      apply();
    });
  }
  bar.hidden = false;
  apply();
}

// What is folded away on the screen belongs on paper; what was open stays open afterwards.
const opened = [];
window.addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details:not([open])")) {
    fold.open = true;
    opened.push(fold);
  }
});
window.addEventListener("afterprint", () => {
  while (opened.length) {
    opened.pop().open = false;
  }
});
