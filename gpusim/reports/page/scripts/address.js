// The address in the browser follows, and is understood: #step=57 or #step=KERNEL:57 (a number, or
// last), &warp=3 and &view=timeline, each alone too; #line=KERNEL:81 and #pc=KERNEL:12 lead to a step.

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
  const parts = new URLSearchParams(hash.slice(1));
  const kind = ["step", "line", "pc"].find((name) => parts.has(name));
  const found = /^(?:(\d+):)?(\d+|last)$/.exec(parts.get(kind) ?? "");
  const work = works[Number(found?.[1] ?? 0)];
  if (!work) return;
  if (/^\d+$/.test(parts.get("warp") ?? "")) work.stepper.chooseWarp(parts.get("warp"));
  if (parts.has("view")) work.view(parts.get("view"));
  if (!found) return;
  const place = found[2];
  if (kind === "line") work.toLine(Number(place));
  else if (kind === "pc") work.toPc(Number(place));
  else work.to(place === "last" ? work.stepper.last : Number(place));
}

// The kernel whose screen takes most of the window.
function current() {
  const seen = (work) => {
    const box = work.section.querySelector(".screen").getBoundingClientRect();
    return Math.min(box.bottom, innerHeight) - Math.max(box.top, 0);
  };
  return works.reduce((best, work) => (!best || seen(work) > seen(best) ? work : best), null);
}

let isReady = false; // the first steps of all kernels are no place that somebody went to
const works = [...document.querySelectorAll(".kernel")].map((section, number) => new Work(section, number));
const steppers = works.map((work) => work.stepper);
if (!/\b(step|line|pc)=/.test(location.hash)) for (const work of works) work.open();
isReady = true;
follow(location.hash);
addEventListener("hashchange", () => follow(location.hash));
addEventListener("keydown", (event) => {
  if (event.target === document.body && event.key.startsWith("Arrow")) current()?.stepper.key(event);
});

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
