// The registers of a warp, lane by lane: results of its instructions up to the step.

const RESULTS = 5; // of a step
const NAMES = 4; // of an entry of the code: name, type and bytes of each result

class Registers {
  constructor(view, stepper) {
    this.view = view;
    this.stepper = stepper;
    this.names = stepper.data.registers;
    this.whose = view.querySelector(".whose");
    const table = view.querySelector("table");
    const head = table.tHead.insertRow();
    made(head, "th", "lane").scope = "col";
    for (let lane = 0; lane < LANES; lane++) made(head, "th", lane).scope = "col";
    this.rows = new Map(this.names.map((name) => {
      const row = table.tBodies[0].insertRow();
      made(row, "th", name).scope = "row";
      return [name, Array.from({ length: LANES }, () => made(row, "td", "·"))];
    }));
    stepper.moved.push(() => this.draw());
    stepper.format?.addEventListener("change", () => this.draw());
  }

  // The values of a warp's registers by name, and the names that the step has set.
  contents(warp) {
    const { data, at } = this.stepper;
    const found = new Map();
    let latest = [], isWhole = true;
    for (let place = 0; place <= at; place++) {
      const step = data.steps[place];
      latest = [];
      if (step[RESULTS] === 0) isWhole = false;
      for (const [of, ...values] of step[RESULTS] || []) {
        if (of !== warp) continue;
        const on = step[WARPS].filter((e) => e[FIRST] <= warp && warp <= e[LAST]).reduce((all, e) => all | e[ON], 0);
        data.code[step[PC]][NAMES].forEach(([name, type, width], result) => {
          if (!found.has(name)) found.set(name, Array(LANES).fill(null));
          latest.push(name);
          for (let lane = 0; lane < LANES; lane++) {
            if ((on >>> lane) & 1) found.get(name)[lane] = { bits: laneOf(values[result], lane), type, width };
          }
        });
      }
    }
    return { found, latest, isWhole };
  }

  draw() {
    const { stepper } = this;
    if (this.view.hidden || stepper.last < 0) return;
    const warp = stepper.warp ?? stepper.step[WARPS][0][FIRST];
    const { found, latest, isWhole } = this.contents(warp);
    this.whose.textContent = `Registers of warp ${warp} after this instruction, a column for each lane; `
      + "its results are marked, · without a value"
      + (isWhole ? "." : ". Cut: the page does not hold the results of later steps.");
    for (const [name, cells] of this.rows) {
      const lanes = found.get(name);
      cells.forEach((cell, lane) => {
        const value = lanes?.[lane];
        cell.textContent = value ? shown(value.bits, value.width, typeOf(stepper.format.value, value.width, value.type)) : "·";
        cell.className = latest.includes(name) ? "wrote" : "";
      });
      cells[0].parentElement.hidden = !lanes;
    }
  }
}

function laneOf(values, lane) {
  if (!Array.isArray(values)) return values;
  return values.length === 2 ? values[0] + lane * values[1] : values[lane];
}
