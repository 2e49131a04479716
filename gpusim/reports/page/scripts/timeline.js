// The timeline: warps of the SM's first block, their source lines, and the stalls of all warps of
// the SM, over one axis in cycles and microseconds. A click on a bar goes to its step.

const TICKS = 16; // of a cycle
const ISSUE = "selected";
const LABELS = 74, ROW = 15, LINE_ROW = 12, SM = 90, GAP = 16, AXIS = 34;
const LEAST_TICKS = 16 * 20;

class Timeline {
  constructor(root, data, work) {
    this.root = root;
    this.data = data;
    this.work = work;
    this.colours = data.reasons.map((name) => STALL_COLOURS[name]);
    this.issue = data.reasons.indexOf(ISSUE);
    this.warps = data.warps.map((warp) => this.unpacked(warp));
    this.code = work.stepper.data.code;
    this.linesMet = [...new Set(this.warps.flatMap((warp) => warp.spans.map((span) => this.lineOf(span.pc))))]
      .sort((a, b) => a - b);
    this.stepsOf = this.occurrences();
    this.build();
    this.whole("block");
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  unpacked([warp, scheduler, start, flat]) {
    const spans = [];
    const issues = new Map(); // pc -> its spans of issue, in order
    let begin = start, isIssued = false;
    for (let at = 0; at < flat.length; at += 3) {
      const span = { begin, end: begin + flat[at], reason: flat[at + 1], pc: flat[at + 2] };
      const before = issues.get(span.pc) ?? [], isIssue = span.reason === this.issue;
      if (isIssue || spans.at(-1)?.pc !== span.pc) isIssued = false;
      span.occurrence = before.length - (isIssued ? 1 : 0); // behind its issue a span belongs to it
      if (isIssue) {
        before.push(span);
        issues.set(span.pc, before);
        isIssued = true;
      }
      spans.push(span);
      begin = span.end;
    }
    return { warp, scheduler, spans, issues };
  }

  lineOf(pc) { return this.code[pc] ? this.code[pc][LINE] : 0; }

  // By warp and pc, the steps in their order: the first is the first issue of the timeline.
  occurrences() {
    const found = new Map();
    this.work.stepper.data.steps.forEach((step, place) => {
      for (const entry of step[WARPS]) {
        for (let warp = entry[FIRST]; warp <= entry[LAST]; warp++) {
          const key = `${warp}:${step[PC]}`;
          if (!found.has(key)) found.set(key, []);
          const steps = found.get(key);
          if (steps[steps.length - 1] !== place) steps.push(place);
        }
      }
    });
    return found;
  }

  build() {
    const head = made(this.root, "div", "", "head");
    const tools = made(head, "div", "", "tools");
    const button = (text, does) => {
      const one = made(tools, "button", text);
      one.type = "button";
      one.addEventListener("click", does);
    };
    button("block", () => this.whole("block"));
    button("SM", () => this.whole("SM"));
    button("zoom in", () => this.zoom(0.5));
    button("zoom out", () => this.zoom(2));
    button("earlier", () => this.pan(-0.4));
    button("later", () => this.pan(0.4));
    const keys = made(head, "ul", "", "keys");
    this.data.reasons.forEach((name, number) => {
      const key = made(keys, "li");
      made(key, "span").style.background = this.colours[number];
      const term = made(key, "b", name, "term");
      term.tabIndex = 0;
      term.dataset.term = name;
    });
    this.at = made(head, "p", "Point at a bar for its stall and line; click it for its step.", "at");
    this.canvas = made(this.root, "canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", this.description());
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("mousemove", (event) => { this.at.textContent = this.described(event); });
    const { blocks, simulated, resident, whole } = this.data;
    made(this.root, "p", `Predicted. Above: the SM's first block, each warp with its scheduler (s0 to s3) and the reason of its cycles (dotted: a barrier opens), `
      + "then its source lines: the fuller the shade, the more warps. "
      + `Below: warps of the SM's first ${blocks} blocks of ${simulated} simulated, ${resident} resident at a time.`
      + (whole ? "" : " Cut: the block has too many spans for the page."), "legend");
  }

  description() {
    const sums = this.data.reasons.map(() => 0);
    for (const warp of this.warps) for (const span of warp.spans) sums[span.reason] += span.end - span.begin;
    const all = sums.reduce((a, b) => a + b, 0) || 1;
    const parts = this.data.reasons.map((name, at) => `${name} ${Math.round(100 * sums[at] / all)} %`);
    return `Timeline of ${this.warps.length} warps of the SM's first block: ${parts.join(", ")}`;
  }

  whole(what) {
    const begin = Math.min(...this.warps.map((warp) => warp.spans[0]?.begin ?? 0));
    const end = Math.max(...this.warps.map((warp) => warp.spans.at(-1)?.end ?? 1));
    this.view = what === "SM" ? [0, this.data.end] : [begin, end];
    this.draw();
  }

  zoom(by) {
    const [begin, end] = this.view;
    const cursor = this.cursor();
    const middle = cursor !== null && cursor >= begin && cursor <= end ? cursor : (begin + end) / 2;
    const width = Math.max(LEAST_TICKS, Math.min(this.data.end, (end - begin) * by));
    this.view = this.within(middle - width / 2, width);
    this.draw();
  }

  pan(by) {
    const width = this.view[1] - this.view[0];
    this.view = this.within(this.view[0] + by * width, width);
    this.draw();
  }

  within(begin, width) {
    const from = Math.max(0, Math.min(begin, this.data.end - width));
    return [from, from + width];
  }

  // The cycle in which the chosen warp, or the first one, issues the step's instruction.
  cursor() {
    const { stepper } = this.work;
    if (stepper.last < 0) return null;
    const [entry] = stepper.entries(stepper.step);
    if (!entry) return null;
    const warp = stepper.warp ?? entry[FIRST], pc = stepper.step[PC];
    const occurrence = (this.stepsOf.get(`${warp}:${pc}`) || []).indexOf(stepper.at);
    const found = this.warps.find((one) => one.warp === warp);
    return found?.issues.get(pc)?.[occurrence]?.begin ?? null;
  }

  follow() {
    const cursor = this.cursor();
    const [begin, end] = this.view;
    if (cursor !== null && (cursor < begin || cursor > end)) this.view = this.within(cursor - (end - begin) / 2, end - begin);
    this.draw();
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    const [begin, end] = this.view;
    const ticks = begin + (event.clientX - box.left - LABELS) * (end - begin) / (box.width - LABELS);
    const y = event.clientY - box.top;
    if (event.clientX - box.left < LABELS) return { ticks: null, y };
    return { ticks, y };
  }

  // What a place of the picture shows: a warp's span, a line, or nothing.
  found(event) {
    const { ticks, y } = this.place(event);
    if (ticks === null) return {};
    const row = Math.floor(y / ROW);
    if (row < this.warps.length) {
      const warp = this.warps[row];
      return { warp, span: warp.spans.find((span) => span.begin <= ticks && ticks < span.end), ticks };
    }
    const line = Math.floor((y - this.warps.length * ROW - GAP) / LINE_ROW);
    return line >= 0 && line < this.linesMet.length ? { line: this.linesMet[line], ticks } : { ticks };
  }

  click(event) {
    const { warp, span, line } = this.found(event);
    if (span) {
      const step = (this.stepsOf.get(`${warp.warp}:${span.pc}`) || [])[span.occurrence];
      this.work.to(step ?? -1, { pc: span.pc });
    } else if (line) this.work.toLine(line);
  }

  described(event) {
    const { warp, span, line, ticks } = this.found(event);
    if (ticks === undefined) return "";
    const time = `cycle ${cycles(ticks)}, ${this.us(ticks)} us`;
    if (span) {
      const [at, text] = this.code[span.pc] || [0, ""];
      return `warp ${warp.warp}, scheduler ${warp.scheduler}, cycles ${cycles(span.begin)} to ${cycles(span.end)}: `
        + `${this.data.reasons[span.reason]}; ${at ? `line ${at}, ` : ""}${text}`;
    }
    return line ? `${time}: line ${line}` : time;
  }

  us(ticks) { return (ticks / TICKS / this.data.mhz).toFixed(3); }

  draw() {
    const width = this.canvas.clientWidth;
    if (!width) return; // in a view that is not shown
    const height = this.warps.length * ROW + GAP + this.linesMet.length * LINE_ROW + GAP + SM + AXIS;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const style = getComputedStyle(document.documentElement);
    this.ink = style.getPropertyValue("--ink");
    this.grey = style.getPropertyValue("--grey");
    const [begin, end] = this.view;
    const x = (ticks) => LABELS + (ticks - begin) * (width - LABELS) / (end - begin);
    context.save();
    context.beginPath();
    context.rect(LABELS, 0, width - LABELS, height);
    context.clip();
    this.drawWarps(context, x);
    const lines = this.warps.length * ROW + GAP;
    this.drawLines(context, x, lines);
    const sm = lines + this.linesMet.length * LINE_ROW + GAP;
    this.drawWindows(context, x, sm);
    this.drawBarriers(context, x, sm - GAP);
    const cursor = this.cursor();
    if (cursor !== null) this.drawCursor(context, x(cursor), sm + SM);
    context.restore();
    this.drawLabels(context, lines, sm);
    this.drawAxis(context, x, sm + SM, width);
  }

  visible(span) { return span.end >= this.view[0] && span.begin <= this.view[1]; }

  drawWarps(context, x) {
    this.warps.forEach((warp, row) => {
      for (const span of warp.spans) {
        if (!this.visible(span)) continue;
        context.fillStyle = this.colours[span.reason];
        context.fillRect(x(span.begin), row * ROW + 1, Math.max(0.6, x(span.end) - x(span.begin)), ROW - 2);
      }
    });
  }

  drawLines(context, x, top) {
    context.fillStyle = this.ink;
    context.globalAlpha = Math.max(0.12, 0.9 / this.warps.length);
    for (const warp of this.warps) {
      for (const span of warp.spans) {
        if (!this.visible(span)) continue;
        const row = this.linesMet.indexOf(this.lineOf(span.pc));
        context.fillRect(x(span.begin), top + row * LINE_ROW + 1, Math.max(0.6, x(span.end) - x(span.begin)), LINE_ROW - 2);
      }
    }
    context.globalAlpha = 1;
  }

  drawWindows(context, x, top) {
    const { windows, end } = this.data;
    const length = windows[0].length, width = end / length;
    const sums = windows[0].map((_, at) => windows.reduce((sum, row) => sum + row[at], 0));
    this.most = Math.max(1, ...sums);
    for (let at = 0; at < length; at++) {
      let y = top + SM;
      windows.forEach((row, reason) => {
        const part = row[at] * SM / this.most;
        if (!part) return;
        context.fillStyle = this.colours[reason];
        context.fillRect(x(at * width), y - part, x((at + 1) * width) - x(at * width) + 0.3, part);
        y -= part;
      });
    }
  }

  drawBarriers(context, x, bottom) {
    context.strokeStyle = this.ink;
    context.setLineDash([2, 3]);
    for (const ticks of this.data.barriers) {
      context.beginPath();
      context.moveTo(x(ticks), 0);
      context.lineTo(x(ticks), bottom);
      context.stroke();
    }
    context.setLineDash([]);
  }

  drawCursor(context, x, bottom) {
    context.strokeStyle = this.ink;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, bottom);
    context.stroke();
    context.lineWidth = 1;
  }

  drawLabels(context, lines, sm) {
    context.fillStyle = this.ink;
    context.textAlign = "left";
    this.warps.forEach((warp, row) => context.fillText(`warp ${warp.warp} (s${warp.scheduler})`, 0, row * ROW + ROW / 2));
    this.linesMet.forEach((line, row) => context.fillText(line ? `line ${line}` : "no line", 0, lines + row * LINE_ROW + LINE_ROW / 2));
    context.fillText(`${Math.round(this.most)} warps`, 0, sm + 6);
    context.fillText("of the SM", 0, sm + 19);
  }

  drawAxis(context, x, top, width) {
    context.fillStyle = this.grey;
    context.strokeStyle = this.grey;
    const [begin, end] = this.view.map((ticks) => ticks / TICKS);
    const step = niceStep((end - begin) / 6);
    context.textAlign = "left";
    context.fillText("cycles", 0, top + 10);
    context.fillText("us", 0, top + 24);
    context.textAlign = "center";
    for (let cycle = Math.ceil(begin / step) * step; cycle <= end; cycle += step) {
      const at = x(cycle * TICKS);
      context.fillRect(at, top, 1, 4);
      if (at > width - 20) continue;
      context.fillText(cycle.toLocaleString("en"), at, top + 10);
      context.fillText(this.us(cycle * TICKS), at, top + 24);
    }
  }
}

function cycles(ticks) { return Math.round(ticks / TICKS).toLocaleString("en"); }

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least) || power;
}
