// Tables that sort, and the function that all scripts make elements with.

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      const sign = down ? -1 : 1;
      const value = (row) => row.cells[place].dataset.value;
      const compare = head.classList.contains("number")
        ? (a, b) => sign * (Number(value(a)) - Number(value(b)))
        : (a, b) => -sign * value(a).localeCompare(value(b));
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort(compare));
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  });
}

function made(parent, kind, text = "", name = "") {
  const element = document.createElement(kind);
  element.textContent = text;
  if (name) element.className = name;
  parent.append(element);
  return element;
}
