// What leads to a line: words to find, and the next hottest line; and the kernel as Markdown.

class Finder {
  constructor(section, work) {
    this.section = section;
    this.work = work;
    this.input = section.querySelector(".find");
    this.found = section.querySelector(".found");
    this.places = [];
    this.input.addEventListener("input", () => this.search());
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
    });
    const rows = [...section.querySelectorAll(".lines tr[data-time]")].filter((row) => Number(row.dataset.time) && Number(row.dataset.line));
    this.hot = rows.sort((a, b) => Number(b.dataset.time) - Number(a.dataset.time));
    this.hottest = -1;
    section.querySelector(".hottest")?.addEventListener("click", () => {
      if (!this.hot.length) return;
      this.hottest = (this.hottest + 1) % this.hot.length;
      work.toLine(Number(this.hot[this.hottest].dataset.line));
    });
    const copy = section.querySelector(".copy");
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(this.markdown());
      copy.textContent = "copied";
      setTimeout(() => { copy.textContent = "copy as Markdown"; }, 1500);
    });
  }

  search() {
    const wanted = this.input.value.trim().toLowerCase();
    this.places = [];
    for (const row of this.section.querySelectorAll(".lines tbody tr, .instructions tbody tr")) {
      const is = wanted !== "" && row.querySelector(".text").textContent.toLowerCase().includes(wanted);
      row.classList.toggle("match", is);
      if (is) this.places.push(row);
    }
    this.place = -1;
    this.found.textContent = wanted ? `${this.places.length} found` : "";
  }

  next(way) {
    if (!this.places.length) return;
    this.place = this.place < 0 && way < 0 ? this.places.length - 1 : (this.place + way + this.places.length) % this.places.length;
    const row = this.places[this.place];
    this.found.textContent = `${this.place + 1} of ${this.places.length}`;
    if (row.dataset.pc) this.work.toPc(Number(row.dataset.pc));
    else this.work.toLine(Number(row.dataset.line));
  }

  markdown() {
    const text = (element) => element.textContent.replace(/\s+/g, " ").trim();
    const cell = (element) => text(element).replaceAll("|", "\\|");
    const { section } = this;
    const parts = [`## ${text(section.querySelector(".summary :first-child"))}`, text(section.querySelector(".launch"))];
    const facts = [...section.querySelectorAll(".strip > div")].map((fact) => `${text(fact.querySelector("dt"))} ${text(fact.querySelector("dd"))}`);
    parts.push(facts.join(", "));
    const findings = [...section.querySelectorAll(".remarks li")].map((one) => `- ${[...one.children].map(text).filter(Boolean).join(": ")}`);
    parts.push(findings.join("\n"));
    const head = [...section.querySelectorAll(".source thead th")].map(cell);
    const rows = [...section.querySelectorAll(".lines tbody tr")].map((row) => [...row.cells].map((one, at) => at === 1 ? `\`${cell(one)}\`` : cell(one)));
    parts.push([head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n"));
    return `${parts.filter(Boolean).join("\n\n")}\n`;
  }
}
