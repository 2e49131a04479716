// The address in the browser follows, and is understood: #step=57 or #step=KERNEL:57 (a number, or
// last) with &warp=3 and &view=timeline; #line=KERNEL:81 and #pc=KERNEL:12 lead to a step.

const SETTLED_MS = 100; // a browser refuses addresses that follow each other too fast
let settling = 0;

function address(work) {
  if (!isReady || location.protocol === "about:") return; // a notebook's frame has no address
  clearTimeout(settling);
  settling = setTimeout(() => replaceAddress(work), SETTLED_MS);
}

function replaceAddress(work) {
  const { stepper, number } = work;
  const parts = [`step=${works.length > 1 ? `${number}:` : ""}${stepper.at}`];
  if (stepper.warp !== null) parts.push(`warp=${stepper.warp}`);
  if (work.shownView !== "lanes") parts.push(`view=${work.shownView}`);
  history.replaceState(null, "", `#${parts.join("&")}`);
}

function follow(hash) {
  const found = /^#(step|line|pc)=(?:(\d+):)?(\d+|last)(.*)$/.exec(hash);
  if (!found) return;
  const [, kind, kernel, place, rest] = found;
  const work = works[Number(kernel || 0)];
  if (!work) return;
  const warp = /&warp=(\d+)/.exec(rest), view = /&view=(\w+)/.exec(rest);
  if (warp) work.stepper.chooseWarp(warp[1]);
  if (view) work.view(view[1]);
  if (kind === "line") work.toLine(Number(place));
  else if (kind === "pc") work.toPc(Number(place));
  else work.to(place === "last" ? work.stepper.last : Number(place));
}

let isReady = false; // the first steps of all kernels are no place that somebody went to
const works = [...document.querySelectorAll(".kernel")].map((section, number) => new Work(section, number));
const steppers = works.map((work) => work.stepper);
isReady = true;
follow(location.hash);
addEventListener("hashchange", () => follow(location.hash));

// Links in a notebook's frame would lead to the notebook's own address.
function followInside(event) {
  const link = event.target.closest('a[href^="#"]');
  if (!link) return;
  event.preventDefault();
  const hash = link.getAttribute("href");
  document.getElementById(hash.slice(1))?.scrollIntoView();
  follow(hash);
}

if (location.protocol === "about:") addEventListener("click", followInside);
