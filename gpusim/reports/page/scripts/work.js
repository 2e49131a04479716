// A kernel's screen: a step, a line or an instruction that is chosen in one part moves all others.

class Work {
  constructor(section, number) {
    this.section = section;
    this.number = number;
    this.stepper = new Stepper(section.querySelector(".stepper"));
    this.lines = section.querySelector(".lines");
    this.instructions = section.querySelector(".instructions");
    this.tabs = [...section.querySelectorAll("[role=tab]")];
    this.chosen = []; // rows that are marked
    const registers = section.querySelector('.view[data-view="registers"]');
    this.registers = registers && new Registers(registers, this.stepper);
    this.branches = new Branches(this.instructions);
    const spans = section.querySelector("script.spans");
    this.timeline = spans && new Timeline(section.querySelector(".timeline"), JSON.parse(spans.textContent), this);
    this.finder = new Finder(section, this);
    this.splitter = new Splitter(section.querySelector(".splitter"));
    this.tabs.forEach((tab, place) => {
      tab.addEventListener("click", () => this.view(tab.dataset.view));
      tab.addEventListener("keydown", (event) => {
        const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!way) return;
        const next = this.tabs[(place + way + this.tabs.length) % this.tabs.length];
        next.focus();
        this.view(next.dataset.view);
      });
    });
    for (const pane of [this.lines, this.instructions]) {
      pane.addEventListener("click", (event) => {
        const row = event.target.closest("tbody tr");
        if (!row || event.target.closest("a") || String(getSelection())) return;
        if (row.dataset.pc) this.toPc(Number(row.dataset.pc));
        else this.toLine(Number(row.dataset.line));
      });
    }
    this.stepper.moved.push(() => this.follow());
    this.follow();
  }

  // A page without an address opens at its first finding.
  open() {
    const first = this.section.querySelector(".remarks a");
    const found = /:(\d+)$/.exec(first?.getAttribute("href") ?? "");
    if (found) this.toLine(Number(found[1]), false);
  }

  get shownView() { return this.tabs.find((tab) => tab.getAttribute("aria-selected") === "true").dataset.view; }

  view(name) {
    if (!this.tabs.some((tab) => tab.dataset.view === name)) return;
    for (const tab of this.tabs) {
      const is = tab.dataset.view === name;
      tab.setAttribute("aria-selected", String(is));
      tab.tabIndex = is ? 0 : -1;
    }
    for (const panel of this.section.querySelectorAll(".view")) panel.hidden = panel.dataset.view !== name;
    if (name === "timeline") this.timeline.draw();
    if (name === "registers") this.registers.draw();
    address(this);
  }

  // The step of a line whose access is the farthest from its ideal; the next one where none is.
  toLine(line, isAsked = true) {
    const { steps, code } = this.stepper.data;
    let worst = -1, most = 0;
    steps.forEach((step, place) => {
      if (code[step[PC]][LINE] !== line) return;
      const excess = Math.max(0, ...this.stepper.entries(step).map((e) => e[UNITS] - e[IDEAL]));
      if (excess > most) [worst, most] = [place, excess];
    });
    const next = this.stepper.find((step) => code[step[PC]][LINE] === line && this.stepper.entries(step).length);
    this.to(worst >= 0 && worst !== this.stepper.at ? worst : next, { line }, isAsked);
  }

  toPc(pc) {
    this.to(this.stepper.find((step) => step[PC] === pc && this.stepper.entries(step).length), { pc });
  }

  // A step; where the block has none, the line or the instruction alone is marked.
  to(step, { line = null, pc = null } = {}, isAsked = true) {
    if (step >= 0) this.stepper.go(step);
    else this.mark(line ?? this.stepper.data.code[pc][LINE], pc);
    if (isAsked) this.intoView();
  }

  follow() {
    if (this.stepper.last < 0) return;
    const pc = this.stepper.step[PC];
    this.mark(this.stepper.data.code[pc][LINE], pc);
    this.timeline?.follow();
    address(this);
  }

  mark(line, pc) {
    for (const row of this.chosen) row.classList.remove("here", "line", "to");
    const rows = [...this.instructions.querySelectorAll(`tr[data-line="${line}"]`)];
    for (const row of rows) row.classList.add("line");
    const source = this.lines.querySelector(`tr[data-line="${line}"]`);
    const code = pc === null ? rows[0] : this.instructions.querySelector(`tr[data-pc="${pc}"]`);
    source?.classList.add("here");
    if (pc !== null) code?.classList.add("here");
    this.branches.mark(pc);
    const target = code?.dataset.target && this.instructions.querySelector(`tr[data-pc="${code.dataset.target}"]`);
    target?.classList.add("to");
    this.chosen = [...rows, source, code, target].filter(Boolean);
    if (code) inPane(this.instructions, code);
    if (source) inPane(this.lines, source);
  }

  intoView() {
    const box = this.section.querySelector(".work").getBoundingClientRect();
    const is = box.top >= 0 && box.bottom <= innerHeight + 1;
    if (!is && !isNarrow()) this.section.querySelector(".screen").scrollIntoView();
    if (isNarrow()) this.chosen.find((row) => row.classList.contains("here"))?.scrollIntoView({ block: "center" });
  }
}

// Paper shows all views, and a picture can only be drawn in one that is shown.
addEventListener("beforeprint", () => {
  for (const { timeline, registers, section } of works) {
    for (const drawn of [timeline, registers].filter(Boolean)) {
      const view = section.querySelector(`.view[data-view="${drawn === timeline ? "timeline" : "registers"}"]`);
      const { hidden } = view;
      view.hidden = false;
      drawn.draw();
      view.hidden = hidden;
    }
  }
});

function isNarrow() { return matchMedia("(max-width: 60rem)").matches; }

// A row is brought into its pane, below the sticky head, without a move of the page.
function inPane(pane, row) {
  const head = pane.querySelector("thead").offsetHeight;
  const top = row.offsetTop, bottom = top + row.offsetHeight;
  if (top - head >= pane.scrollTop && bottom <= pane.scrollTop + pane.clientHeight) return;
  pane.scrollTop = top - (pane.clientHeight + head - row.offsetHeight) / 2;
}
