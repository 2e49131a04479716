// Explanations: a term under the pointer or with the focus has its text beside it.

const EXPLAINED = JSON.parse(document.getElementById("explanations").textContent);

class Explanations {
  constructor() {
    this.box = made(document.body, "div", "", "explanation");
    this.box.id = "explanation";
    this.box.setAttribute("role", "tooltip");
    this.box.hidden = true;
    this.leaving = 0;
    const at = (event) => event.target.closest?.("[data-term]");
    addEventListener("pointerover", (event) => {
      const term = at(event);
      if (term) this.show(term);
      else if (!this.box.contains(event.target)) this.leave();
      else clearTimeout(this.leaving);
    });
    addEventListener("focusin", (event) => { if (at(event)) this.show(at(event)); });
    addEventListener("focusout", () => this.leave());
    addEventListener("click", (event) => { if (at(event)) this.show(at(event)); });
    addEventListener("keydown", (event) => { if (event.key === "Escape") this.hide(); });
  }

  show(term) {
    const [text, url] = EXPLAINED[term.dataset.term] ?? [];
    if (!text) return;
    this.hide();
    this.term = term;
    term.setAttribute("aria-describedby", this.box.id);
    this.box.textContent = text;
    if (url) {
      this.box.append(" ");
      const link = made(this.box, "a", new URL(url).hostname + new URL(url).pathname);
      link.href = url;
      link.rel = "noreferrer";
    }
    this.box.hidden = false;
    const box = term.getBoundingClientRect(), { offsetWidth, offsetHeight } = this.box;
    const below = box.bottom + offsetHeight + 4 <= innerHeight;
    this.box.style.left = `${Math.max(4, Math.min(box.left, innerWidth - offsetWidth - 4))}px`;
    this.box.style.top = `${below ? box.bottom + 2 : Math.max(4, box.top - offsetHeight - 2)}px`;
  }

  leave() {
    clearTimeout(this.leaving);
    this.leaving = setTimeout(() => this.hide(), 250);
  }

  hide() {
    clearTimeout(this.leaving);
    this.term?.removeAttribute("aria-describedby");
    this.term = null;
    this.box.hidden = true;
  }
}

new Explanations();
