// The stepper: a block's steps forwards and backwards, all warps or one. All values come from the
// JSON beside it; nothing is fetched, and text goes in as text, never as markup.

const LANES = 32, BANKS = 32, WORD = 4, STEP_MS = 350, CELL = 4, WIDE = 3;
const [PC, INTERVAL, WARPS, WRITTEN, KIND] = [0, 1, 2, 3, 4];
const [LINE, TEXT, TYPE, WIDTH] = [0, 1, 2, 3]; // of an entry of the code
const [FIRST, LAST, ACTIVE, ON, TAKEN, PLACES, UNITS, IDEAL] = [0, 1, 2, 3, 4, 5, 6, 7];

class Stepper {
  constructor(root) {
    this.root = root;
    this.data = JSON.parse(root.querySelector("script.steps").textContent);
    this.slider = root.querySelector(".slider");
    this.said = root.querySelector(".said");
    this.badge = root.querySelector(".badge");
    this.choice = root.querySelector(".warp");
    this.format = root.querySelector(".format");
    this.at = -1;
    this.moved = []; // functions to call with each new step
    this.contents = new Map(); // first byte of an element -> its width, bits and type
    this.undo = []; // by step, what its writes have replaced
    this.marked = [];
    this.lanes = this.drawLanes(root.querySelector(".lanes"));
    this.words = this.drawMemory(root.querySelector(".memory"));
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    for (const button of root.querySelectorAll("[data-go]")) {
      button.addEventListener("click", () => this.go(this.target(button.dataset.go)));
    }
    this.playing = 0;
    this.button = root.querySelector(".play");
    this.button.addEventListener("click", () => this.play(!this.playing));
    root.querySelector(".memory")?.addEventListener("pointerover", (event) => this.tellWord(event.target));
    this.choice.addEventListener("change", () => this.chooseWarp(this.choice.value));
    this.format?.addEventListener("change", () => {
      for (const place of this.contents.keys()) this.write(place);
    });
    root.addEventListener("keydown", (event) => this.key(event));
    this.go(0);
  }

  get last() { return this.data.steps.length - 1; }
  get warp() { return this.choice.value === "all" ? null : Number(this.choice.value); }
  get step() { return this.data.steps[this.at]; }

  // The warps of a step that are looked at, one entry for those that do the same.
  entries(step) {
    const warp = this.warp;
    if (warp === null) return step[WARPS];
    return step[WARPS].filter((entry) => entry[FIRST] <= warp && warp <= entry[LAST]);
  }

  drawLanes(list) {
    const rows = [];
    for (let warp = 0; warp * LANES < this.data.threads; warp++) {
      const row = made(list, "li");
      made(row, "span", `warp ${warp}`);
      rows.push({ row, name: row.firstChild, lanes: made(row, "span"), width: Math.min(LANES, this.data.threads - warp * LANES) });
      const option = made(this.choice, "option", `warp ${warp}`);
      option.value = warp;
    }
    return rows;
  }

  drawMemory(table) {
    if (!this.data.words) {
      this.root.querySelector(".words").hidden = true;
      return [];
    }
    const width = Math.min(BANKS, this.data.words);
    const head = table.tHead.insertRow();
    const name = made(head, "th", "bank");
    name.scope = "col";
    name.dataset.term = "bank";
    for (let bank = 0; bank < width; bank++) made(head, "th", bank).scope = "col";
    const requested = table.tHead.insertRow();
    requested.className = "requested";
    made(requested, "th", "words").scope = "row";
    this.requested = Array.from({ length: width }, () => made(requested, "td"));
    const words = [];
    for (let word = 0; word < this.data.words; word++) {
      const row = word % BANKS ? table.tBodies[0].rows[Math.floor(word / BANKS)]
        : table.tBodies[0].insertRow();
      if (word % BANKS === 0) made(row, "th", word).scope = "row";
      words.push(made(row, "td", "·"));
    }
    return words;
  }

  target(name) {
    if (name === "barrier") {
      const here = this.step[INTERVAL];
      const next = this.data.steps.findIndex((step) => step[INTERVAL] > here);
      return next < 0 ? this.last : next;
    }
    if (name === "first") return 0;
    if (name === "last") return this.last;
    const way = name === "on" ? 1 : -1;
    let to = this.at + way;
    while (to > 0 && to < this.last && !this.entries(this.data.steps[to]).length) to += way;
    return to;
  }

  key(event) {
    const keys = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "last" };
    const name = keys[event.key];
    const other = event.target.closest?.("select, [role=tab], .scroll, canvas");
    if (!name || other || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.go(this.target(name));
  }

  // Step after step, to the last one or a second press.
  play(is) {
    clearInterval(this.playing);
    this.playing = 0;
    if (is) {
      if (this.at === this.last) this.go(0);
      this.playing = setInterval(() => {
        this.go(this.target("on"));
        if (this.at === this.last) this.play(false);
      }, STEP_MS);
    }
    this.button.textContent = is ? "pause" : "play";
    this.button.setAttribute("aria-pressed", String(is));
  }

  // A cell is as narrow as 32 banks ask; its value stands above the table in full.
  tellWord(cell) {
    const word = this.words.indexOf(cell);
    if (word >= 0) this.root.querySelector(".word").textContent = `word ${word}, bank ${word % BANKS}: ${cell.textContent}`;
  }

  // The next step behind this one that fits; the first of all if there is none behind.
  find(fits) {
    const order = this.data.steps.map((_, place) => (this.at + 1 + place) % (this.last + 1));
    const found = order.find((place) => fits(this.data.steps[place], place));
    return found === undefined ? -1 : found;
  }

  chooseWarp(warp) {
    this.choice.value = warp;
    if (this.choice.value === "") this.choice.value = "all";
    this.go(this.at);
  }

  go(wanted) {
    if (this.last < 0) return;
    const to = Math.max(0, Math.min(this.last, wanted));
    while (this.at < to) this.forward();
    while (this.at > to) this.backward();
    this.show();
    for (const listener of this.moved) listener();
  }

  forward() {
    this.at += 1;
    const before = [];
    for (const [place, width, bits] of this.step[WRITTEN]) {
      before.push([place, this.contents.get(place)]);
      this.contents.set(place, { width, bits, used: this.data.code[this.step[PC]][TYPE] });
      this.write(place);
    }
    this.undo.push(before);
  }

  backward() {
    this.at -= 1;
    for (const [place, element] of this.undo.pop().reverse()) {
      if (element === undefined) this.contents.delete(place);
      else this.contents.set(place, element);
      this.write(place);
    }
  }

  write(place) {
    const word = Math.floor(place / WORD);
    if (word >= this.words.length) return;
    const texts = [];
    for (let byte = word * WORD; byte < (word + 1) * WORD; byte++) {
      const found = this.contents.get(byte);
      if (found === undefined) continue;
      texts.push(shown(found.bits, found.width, typeOf(this.format.value, found.width, found.used)));
    }
    const cell = this.words[word], text = texts.join(" ") || "·";
    cell.textContent = text;
    if (text.length < WIDE) {
      delete cell.dataset.short;
      return;
    }
    const short = cell.dataset.short = text.length > CELL ? shortened(text) : text;
    cell.style.setProperty("--letters", short.length);
  }

  show() {
    const step = this.step;
    const entries = this.entries(step);
    const [line, text] = this.data.code[step[PC]];
    let on = 0, active = 0;
    for (const entry of entries) {
      const warps = this.warp === null ? entry[LAST] - entry[FIRST] + 1 : 1;
      on += warps * count(entry[ON]);
      active += warps * count(entry[ACTIVE]);
    }
    const part = entries.length
      ? `warp ${this.warp ?? ranges(entries)}: ${on} of ${active} active lanes predicated on`
      : `warp ${this.warp} is not active`;
    const sentence = `step ${this.at + 1} of ${this.last + 1}, barrier interval ${step[INTERVAL]}: `
      + `${line ? `line ${line}` : "no source line"}, ${text}; ${part}`;
    this.said.textContent = sentence;
    this.slider.value = this.at;
    this.slider.setAttribute("aria-valuetext", sentence);
    this.showBadge(entries);
    this.showLanes(step);
    this.showMemory(step, entries);
  }

  showBadge(entries) {
    const worst = entries.reduce((one, e) => !one || e[UNITS] > one[UNITS] ? e : one, null);
    this.badge.hidden = !worst || !worst[UNITS];
    if (this.badge.hidden) return;
    const unit = worst[PLACES] ? "wavefront" : "sector";
    const most = entries.some((e) => e[UNITS] !== worst[UNITS]) ? "up to " : "";
    const units = `${worst[UNITS]} ${unit}${worst[UNITS] === 1 ? "" : "s"}`;
    this.badge.textContent = `${most}${units}, ideal ${worst[IDEAL]}`;
    this.badge.classList.toggle("bad", worst[UNITS] > worst[IDEAL]);
  }

  showLanes(step) {
    for (const { row, lanes, width } of this.lanes) {
      row.className = "";
      lanes.textContent = "·".repeat(width);
    }
    for (const entry of this.entries(step)) {
      const first = this.warp ?? entry[FIRST], last = this.warp ?? entry[LAST];
      for (let warp = first; warp <= last; warp++) this.showWarp(this.lanes[warp], entry);
    }
    this.groupLanes();
  }

  // Neighbouring warps whose lanes do the same are one row.
  groupLanes() {
    let first = 0;
    this.lanes.forEach(({ row, lanes }, warp) => {
      const before = this.lanes[first];
      const is = warp > first && lanes.textContent === before.lanes.textContent && row.className === before.row.className;
      row.hidden = is;
      if (!is) first = warp;
      this.lanes[first].name.textContent = first === warp ? `warp ${warp}` : `warp ${first}-${warp}`;
    });
  }

  // A warp may come in parts that diverged: each adds its lanes.
  showWarp({ row, lanes, width }, entry) {
    const before = [...lanes.textContent];
    row.className = "part";
    const glyphs = before.map((glyph, lane) => {
      if ((entry[ON] >>> lane) & 1) return "●";
      return (entry[ACTIVE] >>> lane) & 1 ? "○" : glyph;
    });
    lanes.textContent = "";
    for (let lane = 0; lane < width;) {
      let end = lane + 1;
      while (end < width && glyphs[end] === glyphs[lane]) end += 1;
      made(lanes, glyphs[lane] === "●" ? "b" : "span", glyphs[lane].repeat(end - lane));
      lane = end;
    }
  }

  showMemory(step, entries) {
    for (const element of this.marked) element.className = "";
    this.marked = [];
    if (!this.words.length) return;
    const name = step[KIND] === "load" ? "read" : "wrote";
    const width = Math.max(1, Math.ceil(this.data.code[step[PC]][WIDTH] / WORD));
    const banks = Array.from({ length: BANKS }, () => 0);
    for (const entry of entries) {
      const touched = new Set();
      for (const place of entry[PLACES] || []) {
        for (let more = 0; more < width; more++) touched.add(Math.floor(place / WORD) + more);
      }
      const own = Array.from({ length: BANKS }, () => 0);
      for (const word of touched) {
        own[word % BANKS] += 1;
        if (!this.words[word]) continue;
        this.words[word].className = name;
        this.marked.push(this.words[word]);
      }
      own.forEach((words, bank) => { banks[bank] = Math.max(banks[bank], words); });
    }
    this.requested.forEach((one, bank) => {
      one.textContent = banks[bank] || "";
      one.className = banks[bank] > width ? "many" : "";
    });
  }
}

// A number in as many characters as a cell has: .53 for 0.5312, 12 for 12.34, 3e4 for 31,250.
function shortened(text) {
  const number = Number(text);
  if (Number.isNaN(number)) return `${text.slice(0, CELL - 1)}…`;
  if (Math.abs(number) < 1) return number.toFixed(number < 0 ? 1 : 2).replace("0.", ".");
  const whole = Math.trunc(number).toString();
  return whole.length <= CELL ? whole : number.toExponential(0).replace("e+", "e");
}

// The warps of a step: "0-3, 6".
function ranges(entries) {
  const found = [];
  for (const entry of [...entries].sort((a, b) => a[FIRST] - b[FIRST])) {
    const before = found[found.length - 1];
    if (before && entry[FIRST] <= before[1] + 1) before[1] = Math.max(before[1], entry[LAST]);
    else found.push([entry[FIRST], entry[LAST]]);
  }
  return found.map(([first, last]) => first === last ? first : `${first}-${last}`).join(", ");
}
