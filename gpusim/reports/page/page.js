"use strict";
// Tables that sort, and the stepper: a block's steps forwards and backwards. All values come from
// the JSON beside each stepper; nothing is fetched, and text goes in as text, never as markup.

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

const LANES = 32, BANKS = 32, WORD = 4;
const [PC, INTERVAL, WARPS, WRITTEN, KIND] = [0, 1, 2, 3, 4];
const TYPE = 2; // of an entry of the code, beside its line and text
const [FIRST, LAST, ACTIVE, ON, TAKEN, PLACES] = [0, 1, 2, 3, 4, 5];

function cell(row, text, kind = "td") {
  const made = document.createElement(kind);
  made.textContent = text;
  row.append(made);
  return made;
}

// Elements come as the bits of a signed number; a type reads them again.
const BITS = new DataView(new ArrayBuffer(8));
const READ = {
  bool: "getUint8", int8: "getInt8", uint8: "getUint8", int16: "getInt16", uint16: "getUint16",
  int32: "getInt32", uint32: "getUint32", int64: "getBigInt64", uint64: "getBigUint64",
  float32: "getFloat32", float64: "getFloat64",
};

function shown(bits, width, type) {
  if (type === "hex") {
    return "0x" + BigInt.asUintN(8 * width, BigInt(bits)).toString(16).padStart(2 * width, "0");
  }
  BITS.setBigInt64(0, BigInt(bits), true);
  const value = BITS[READ[type]](0, true);
  return String(type.startsWith("float") ? Number(value.toPrecision(6)) : value);
}

function typeOf(format, width, used) {
  if (format === "hex") return format;
  if (format !== "used") return `${format}${8 * width}` in READ ? `${format}${8 * width}` : "hex";
  return used === "bool" || used.endsWith(String(8 * width)) ? used : `int${8 * width}`;
}

function count(bits) {
  let lanes = 0;
  for (let lane = 0; lane < LANES; lane++) lanes += (bits >>> lane) & 1;
  return lanes;
}

class Stepper {
  constructor(root) {
    this.root = root;
    this.section = root.closest("section");
    this.data = JSON.parse(root.querySelector("script").textContent);
    this.slider = root.querySelector(".slider");
    this.said = root.querySelector(".said");
    this.at = -1;
    this.contents = new Map(); // first byte of an element -> its width, bits and type
    this.format = root.querySelector(".format");
    this.undo = []; // by step, what its writes have replaced
    this.lanes = this.drawLanes(root.querySelector(".lanes").tBodies[0]);
    this.words = this.drawMemory(root.querySelector(".memory"));
    this.marked = [];
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    for (const button of root.querySelectorAll("[data-go]")) {
      button.addEventListener("click", () => this.go(this.target(button.dataset.go)));
    }
    this.format.addEventListener("change", () => {
      for (const place of this.contents.keys()) this.write(place);
    });
    root.addEventListener("keydown", (event) => this.key(event));
    this.go(0);
  }

  get last() { return this.data.steps.length - 1; }

  drawLanes(body) {
    const rows = [];
    for (let warp = 0; warp * LANES < this.data.threads; warp++) {
      const row = body.insertRow();
      cell(row, `warp ${warp}`, "th").scope = "row";
      const width = Math.min(LANES, this.data.threads - warp * LANES);
      rows.push({ row, cells: Array.from({ length: width }, () => cell(row, "·")) });
    }
    return rows;
  }

  drawMemory(table) {
    if (!this.data.words) {
      table.hidden = true;
      return [];
    }
    const head = table.tHead.insertRow();
    cell(head, "word", "th").scope = "col";
    const width = Math.min(BANKS, this.data.words);
    for (let bank = 0; bank < width; bank++) cell(head, bank, "th").scope = "col";
    const words = [];
    for (let word = 0; word < this.data.words; word++) {
      const row = word % BANKS ? table.tBodies[0].rows[Math.floor(word / BANKS)]
        : table.tBodies[0].insertRow();
      if (word % BANKS === 0) cell(row, word, "th").scope = "row";
      words.push(cell(row, "·"));
    }
    return words;
  }

  target(name) {
    if (name === "barrier") {
      const here = this.data.steps[this.at][INTERVAL];
      const next = this.data.steps.findIndex((step) => step[INTERVAL] > here);
      return next < 0 ? this.last : next;
    }
    return { first: 0, back: this.at - 1, on: this.at + 1, last: this.last }[name];
  }

  key(event) {
    const keys = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "last" };
    const name = keys[event.key];
    if (!name || event.target === this.format || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.go(this.target(name));
  }

  go(wanted) {
    if (this.last < 0) return;
    const to = Math.max(0, Math.min(this.last, wanted));
    while (this.at < to) this.forward();
    while (this.at > to) this.backward();
    this.show();
  }

  forward() {
    this.at += 1;
    const before = [];
    const step = this.data.steps[this.at];
    for (const [place, width, bits] of step[WRITTEN]) {
      before.push([place, this.contents.get(place)]);
      this.contents.set(place, { width, bits, used: this.data.code[step[PC]][TYPE] });
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
    this.words[word].textContent = texts.join(" ") || "·";
  }

  mark(element, name) {
    if (!element) return;
    element.classList.add(name);
    this.marked.push([element, name]);
  }

  show() {
    for (const [element, name] of this.marked) element.classList.remove(name);
    this.marked = [];
    const step = this.data.steps[this.at];
    const [line, text] = this.data.code[step[PC]];
    let on = 0;
    let active = 0;
    this.lanes.forEach(({ row, cells }) => {
      row.classList.add("rest");
      cells.forEach((one) => { one.textContent = "·"; one.className = ""; });
    });
    for (const entry of step[WARPS]) {
      for (let warp = entry[FIRST]; warp <= entry[LAST]; warp++) {
        this.showWarp(warp, entry);
        on += count(entry[ON]);
        active += count(entry[ACTIVE]);
      }
      for (const place of entry[PLACES] || []) {
        this.mark(this.words[Math.floor(place / WORD)], step[KIND] === "load" ? "read" : "wrote");
      }
    }
    this.mark(this.section.querySelector(`.source [data-line="${line}"]`), "here");
    this.mark(this.section.querySelector(`.code [data-pc="${step[PC]}"]`), "here");
    const which = step[WARPS].map((e) => e[FIRST] === e[LAST] ? e[FIRST] : `${e[FIRST]}-${e[LAST]}`);
    const sentence = `step ${this.at + 1} of ${this.last + 1}, barrier interval ${step[INTERVAL]}: `
      + `${line ? `line ${line}` : "set up"}, ${text}; warp ${[...new Set(which)].join(", ")}: `
      + `${on} of ${active} active lanes predicated on`;
    this.said.textContent = sentence;
    this.slider.value = this.at;
    this.slider.setAttribute("aria-valuetext", sentence);
  }

  showWarp(warp, entry) {
    const { row, cells } = this.lanes[warp];
    row.classList.remove("rest");
    cells.forEach((one, lane) => {
      const bit = (bits) => (bits >>> lane) & 1;
      if (bit(entry[ON])) { one.textContent = "●"; one.className = "on"; }
      else if (bit(entry[ACTIVE])) one.textContent = "○";
    });
  }
}

const steppers = [...document.querySelectorAll(".stepper")].map((root) => new Stepper(root));

// page.html#step=0:57 shows step 57 of the first kernel; a step may be "last".
const wanted = /^#step=(\d+):(\d+|last)$/.exec(location.hash);
if (wanted && steppers[wanted[1]]) {
  const stepper = steppers[wanted[1]];
  stepper.go(wanted[2] === "last" ? stepper.last : Number(wanted[2]));
}
