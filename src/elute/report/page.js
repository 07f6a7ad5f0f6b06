"use strict";
// Tables stand complete in the page; this makes them sort and filter.

const value = (row, column) => row.cells[column].textContent.trim();

function compare(column, numeric, sign) {
  return (one, other) => {
    const a = value(one, column), b = value(other, column);
    const x = numeric ? parseFloat(a) : a, y = numeric ? parseFloat(b) : b;
    const empty = (v) => v === "" || Number.isNaN(v);
    if (empty(x) || empty(y)) return empty(x) - empty(y); // what is missing stays below
    return sign * (numeric ? x - y : x.localeCompare(y, "en", { numeric: true }));
  };
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (!head.textContent.trim()) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.hasAttribute("aria-sort") && other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0], numeric = head.classList.contains("n");
      body.append(...[...body.rows].sort(compare(column, numeric, down ? -1 : 1)));
    });
  });
}

function filterable(table, number) {
  const rows = [...table.tBodies[0].rows];
  const texts = rows.map((row) => [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase());
  const line = document.createElement("p");
  line.className = "filter";
  const label = document.createElement("label");
  label.htmlFor = `filter-${number}`;
  label.textContent = "Show rows with";
  const input = document.createElement("input");
  Object.assign(input, { id: label.htmlFor, type: "search", placeholder: "words, in any column", autocomplete: "off" });
  const count = document.createElement("output");
  count.htmlFor = input.id;
  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, k) => {
      row.hidden = !words.every((word) => texts[k].includes(word));
      shown += !row.hidden;
    });
    count.textContent = words.length ? `${shown} of ${rows.length} rows` : `${rows.length} rows`;
  };
  input.addEventListener("input", show);
  show();
  line.append(label, input, count);
  table.parentElement.before(line);
}

document.querySelectorAll("table").forEach((table, number) => {
  sortable(table);
  if (table.dataset.filter) filterable(table, number);
});
