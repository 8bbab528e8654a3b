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
  body.append(...rows);
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

for (const bar of document.querySelectorAll(".filter")) {
  const rows = [...document.getElementById(bar.dataset.table).tBodies[0].rows];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const wanted = bar.querySelector("[data-filter=text]");
  const group = bar.querySelector("[data-filter=group]");
  const matches = bar.querySelector(".matches");
  const apply = () => {
    const words = wanted.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, i) => {
      const fits =
        (group.value === "" || row.dataset.group === group.value) &&
        words.every((word) => texts[i].includes(word));
      row.hidden = !fits;
      shown += fits;
    });
    matches.textContent = `${shown} of ${rows.length} rows shown`;
  };
  wanted.addEventListener("input", apply);
  group.addEventListener("change", apply);
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
