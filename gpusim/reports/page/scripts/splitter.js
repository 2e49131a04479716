// The bar between source and stepper: dragged, or moved by arrow keys.

class Splitter {
  constructor(bar) {
    this.bar = bar;
    this.work = bar.parentElement;
    bar.addEventListener("pointerdown", (event) => {
      bar.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    bar.addEventListener("pointermove", (event) => {
      if (bar.hasPointerCapture(event.pointerId)) this.to(event.clientX - this.work.getBoundingClientRect().left);
    });
    bar.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: -32, ArrowRight: 32 }[event.key];
      if (!way) return;
      event.preventDefault();
      this.to(bar.offsetLeft - this.work.offsetLeft + way);
    });
  }

  to(pixels) {
    const whole = this.work.clientWidth;
    const part = Math.round(100 * Math.max(0.2, Math.min(0.8, pixels / whole)));
    this.work.style.setProperty("--left", `${part}%`);
    this.bar.setAttribute("aria-valuenow", part);
  }
}
