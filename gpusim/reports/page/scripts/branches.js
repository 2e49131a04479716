// Arrows from branches to their targets, in the gutter of the machine code.

const SVG = "http://www.w3.org/2000/svg";
const GUTTER = 30, DEPTH = 5, DEPTHS = 5;

class Branches {
  constructor(pane) {
    this.pane = pane;
    this.rows = [...pane.querySelectorAll("tbody tr")];
    const places = new Map(this.rows.map((row, place) => [row.dataset.pc, place]));
    const branches = this.rows.filter((row) => places.has(row.dataset.target))
      .map((row) => ({ row, from: places.get(row.dataset.pc), to: places.get(row.dataset.target) }));
    this.branches = this.nested(branches);
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("class", "arrows");
    this.svg.setAttribute("aria-hidden", "true");
    pane.append(this.svg);
    for (const branch of this.branches) {
      branch.path = document.createElementNS(SVG, "path");
      this.svg.append(branch.path);
    }
    new ResizeObserver(() => this.draw()).observe(pane.querySelector("table"));
  }

  // Short branches lie inside longer ones; those of one target share a line.
  nested(branches) {
    const taken = [];
    for (const branch of [...branches].sort((a, b) => Math.abs(a.to - a.from) - Math.abs(b.to - b.from))) {
      const low = Math.min(branch.from, branch.to), high = Math.max(branch.from, branch.to);
      const free = (depth) => !taken.some((one) => one.depth === depth && one.to !== branch.to
        && one.low <= high && low <= one.high);
      branch.depth = [...Array(DEPTHS).keys()].find(free) ?? DEPTHS - 1;
      taken.push({ low, high, depth: branch.depth, to: branch.to });
    }
    return branches;
  }

  draw() {
    const middle = (place) => this.rows[place].offsetTop + Math.min(this.rows[place].offsetHeight, 20) / 2;
    if (!this.branches.length || !this.rows[0].offsetHeight) return;
    this.svg.style.left = `${this.rows[0].cells[1].offsetLeft}px`;
    this.svg.setAttribute("width", GUTTER);
    this.svg.setAttribute("height", this.pane.querySelector("table").offsetHeight);
    for (const { path, from, to, depth } of this.branches) {
      const left = GUTTER - 6 - DEPTH * (depth + 1), right = GUTTER - 2;
      const start = middle(from), end = middle(to) + (from === to ? 4 : 0);
      path.setAttribute("d", `M${right} ${start} H${left} V${end} H${right} m-4 -3 l4 3 l-4 3`);
    }
  }

  mark(pc) {
    for (const { row, path } of this.branches) path.classList.toggle("here", row.dataset.pc === String(pc));
  }
}
