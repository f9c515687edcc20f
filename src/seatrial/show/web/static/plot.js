// Large plots over time: every <figure class="plot" data-plot="KIND" data-src="....json"> is drawn
// here by its kind (see plot_kinds.js), on TimePlot. All figures of a page share one window of time,
// which stands in the address as from and to (seconds since 1970). Drag to zoom, double click to
// see all; with the keyboard + - 0 and the arrows. Colours are those of style.css; on paper they
// are the light ones. When there is news, figures that can be seen are asked for again.
"use strict";
window.plots = (() => {
  const SOON_MS = 300, LEAST_MS = 2000, QUIET_MS = 30000, PRINT_PX = 690;
  const kinds = {}, figures = [];
  const view = { whole: [0, 1], from: null, to: null, zone: 0 };
  let printing = false;

  // ---- small things -------------------------------------------------------------------------

  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  function colours() {
    const style = getComputedStyle(document.documentElement);
    return (name) => style.getPropertyValue("--" + name).trim() || "#888";
  }

  // A time as this server's clock shows it, whatever the browser's zone is.
  const local = (t) => new Date((t + view.zone) * 1000);
  const two = (n) => String(n).padStart(2, "0");
  function moment(t) {
    const at = local(t);
    return `${at.getUTCFullYear()}-${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())} ` +
      `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}`;
  }
  function seconds(s) {
    if (s < 0.9995) return `${+(1000 * s).toPrecision(3)} ms`;
    if (s < 60) return `${s < 9.995 ? +s.toPrecision(3) : s.toFixed(1)} s`;
    const whole = Math.round(s);
    for (const [size, unit, lower, name] of [[86400, "d", 3600, "h"], [3600, "h", 60, "m"]]) {
      if (whole >= size) return `${Math.floor(whole / size)} ${unit} ${Math.floor((whole % size) / lower)} ${name}`;
    }
    return `${Math.floor(whole / 60)} m ${whole % 60} s`;
  }
  const count = (n) => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");

  // ---- the window of time -------------------------------------------------------------------

  const shown = () => (view.from === null ? view.whole : [view.from, view.to]);

  function look(from, to) {
    const [first, last] = view.whole;
    const width = Math.min(to - from, last - first), least = Math.max((last - first) / 1e5, 1e-3);
    if (!(width > 0)) return;
    from = Math.max(first, Math.min(from, last - width));
    to = from + Math.max(width, least);
    const all = from <= first && to >= last;
    const digits = width < 600 ? 1 : 0;  // what is seen is what the address says
    view.from = all ? null : Number(from.toFixed(digits));
    view.to = all ? null : Number(to.toFixed(digits));
    const address = new URL(location.href);
    for (const [name, at] of [["from", view.from], ["to", view.to]]) {
      if (at === null) address.searchParams.delete(name);
      else address.searchParams.set(name, String(at));
    }
    history.replaceState(history.state, "", address);
    for (const figure of figures) figure.look();
  }

  function pan(share) {
    const [from, to] = shown(), by = (to - from) * share;
    look(from + by, to + by);
  }
  function zoom(factor) {
    const [from, to] = shown(), middle = (from + to) / 2, half = ((to - from) * factor) / 2;
    look(middle - half, middle + half);
  }
  const all = () => look(...view.whole);

  function takeAxis(axis) {
    view.zone = axis.zone;
    view.whole = [axis.start, Math.max(axis.end, axis.start + 1)];
  }

  // ---- figures -------------------------------------------------------------------------------

  class Figure {
    constructor(element) {
      this.element = element;
      this.kind = kinds[element.dataset.plot];
      this.plots = [];
      this.text = null;
      this.seen = true;
      this.stale = false;
      this.asked = 0;
      this.drawn = 0;
      this.colour = colours();
      this.bar = make("div", { class: "bar" });
      this.said = make("span", { class: "said", role: "status" });
      this.tip = make("div", { class: "tip", hidden: "" });
      this.holder = make("div", { class: "canvas", tabindex: "0", role: "group" });
      this.holder.setAttribute("aria-roledescription", "plot");
      this.holder.setAttribute("aria-label", `${element.dataset.title}. ` +
        "Keys: plus and minus zoom, the arrows move, 0 shows all" + (this.kind.keys || "") + ".");
      element.append(this.bar, this.holder, this.tip);
      this.buttons();
      this.none("Reading ...");
      this.listen();
      this.ask();
    }

    buttons() {
      const button = (text, label, act) => {
        const made = make("button", { type: "button", "aria-label": label, title: label }, text);
        made.addEventListener("click", act);
        return made;
      };
      this.tools = make("span", { class: "tools" });
      this.bar.append(
        button("+", "Zoom in (key +)", () => zoom(0.5)), button("\u2212", "Zoom out (key -)", () => zoom(2)),
        button("All", "See all (key 0, or double click)", all), this.tools, this.said);
    }

    listen() {
      const { holder } = this;
      new ResizeObserver(() => this.resize()).observe(holder);
      new IntersectionObserver(([entry]) => {
        this.seen = entry.isIntersecting;
        if (this.seen && this.stale) this.ask();
      }, { rootMargin: "300px" }).observe(this.element);
      holder.addEventListener("mouseleave", () => { this.tip.hidden = true; });
      holder.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const far = event.shiftKey ? 0.5 : 0.1;
        const act = {
          "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: all, Home: all, Escape: all,
          ArrowLeft: () => pan(-far), ArrowRight: () => pan(far),
        }[event.key] || (this.kind.key && this.data && this.kind.key(this, event.key));
        if (act) { event.preventDefault(); act(); }
      });
    }

    // ---- its data -------------------------------------------------------------------------

    news() {
      const ended = this.data && this.data.ready && this.data.judged !== false && !this.data.axis.running;
      const least = this.data?.ready ? (ended ? QUIET_MS : LEAST_MS) : SOON_MS;
      const wait = this.asked + least - Date.now();
      this.stale = true;
      clearTimeout(this.timer);
      if ((this.seen || !this.data?.ready) && !document.hidden) this.timer = setTimeout(() => this.ask(), Math.max(0, wait));
    }

    async ask() {
      if (this.asking) return;
      this.asking = true;
      this.stale = false;
      this.asked = Date.now();
      try {
        const response = await fetch(this.source());
        const text = await response.text();
        if (!response.ok) throw new Error(JSON.parse(text).error || response.statusText);
        if (text !== this.text) {
          this.text = text;
          this.data = JSON.parse(text);
          this.draw();
        }
      } catch (error) {
        if (!this.data) this.none(`This could not be drawn: ${error.message}`);
      } finally {
        this.asking = false;
      }
    }

    source() {
      const address = new URL(this.element.dataset.src, location.href);
      if (this.kind.finer && view.from !== null) {
        address.searchParams.set("since", view.from.toFixed(1));
        address.searchParams.set("until", view.to.toFixed(1));
      }
      return address;
    }

    // ---- drawing --------------------------------------------------------------------------

    width() {
      return printing ? PRINT_PX : Math.max(240, this.holder.clientWidth || this.element.clientWidth);
    }

    draw() {
      this.began = performance.now();
      const { data } = this;
      if (!data.ready) return this.none("Being judged ...");
      takeAxis(data.axis);
      if (this.kind.empty(data)) return this.none(this.kind.nothing);
      this.none("");
      this.kind.draw(this, data);
      this.look();
    }

    // How often it was painted, and how long the last new data took: for tests and bench/plot.py.
    painted() {
      this.element.dataset.drawn = String(++this.drawn);
      if (this.began) this.element.dataset.ms = (performance.now() - this.began).toFixed(1);
      cancelAnimationFrame(this.frame);
      this.frame = requestAnimationFrame(() => { this.began = 0; });
    }

    // The message that stands in place of a plot, or none.
    none(text) {
      this.message?.remove();
      this.message = null;
      this.bar.hidden = Boolean(text);
      if (!text) return;
      this.drop();
      this.message = make("p", { class: "none" }, text);
      this.holder.append(this.message);
    }

    drop() {
      for (const plot of this.plots) plot.destroy();
      this.plots = [];
      this.holder.replaceChildren();
    }

    add(settings) {
      const plot = new TimePlot(this.holder, {
        width: this.width(), zone: () => view.zone, colour: (name) => this.colour(name),
        painted: () => this.painted(), point: (at) => this.point(at), select: look, all, ...settings,
      });
      this.plots.push(plot);
      return plot;
    }

    // Show the window of time.
    look() {
      for (const plot of this.plots) plot.look(...shown());
      if (this.kind.finer && this.data?.ready && this.window !== `${view.from} ${view.to}`) {
        this.window = `${view.from} ${view.to}`;
        clearTimeout(this.finer);
        this.finer = setTimeout(() => this.ask(), 150);
      }
      this.say();
    }

    say() {
      if (view.from === null) return this.said.replaceChildren();
      const [from, to] = shown();
      this.said.replaceChildren(`${moment(from)} to ${moment(to)} (${seconds(to - from)}) `);
      const runs = this.element.dataset.runs;
      if (!runs) return;
      const iso = (t) => new Date(t * 1000).toISOString().slice(0, 19) + "Z";
      const link = `${runs}&since=${iso(from)}&until=${iso(Math.ceil(to))}`;
      this.said.append(make("a", { href: link }, "its runs"));
    }

    resize() {
      const width = this.width();
      for (const plot of this.plots) if (plot.width !== width) plot.resize(width);
    }

    redraw() {
      this.colour = colours();
      this.kind.restyle?.(this);
      this.resize();
      for (const plot of this.plots) plot.redraw();
    }

    point(plot) {
      const lines = this.kind.point(this, plot, this.data);
      this.tip.hidden = !lines;
      if (lines) this.tell(lines, plot, ...plot.pointer);
    }

    // Lines beside a place on a plot: the first is strong, the others plain.
    tell(lines, plot, left, top) {
      const [first, ...rest] = lines;
      this.tip.replaceChildren(make("b", {}, first), ...rest.map((text) => make("span", { class: "quiet" }, text)));
      this.tip.hidden = false;
      const over = plot.over.getBoundingClientRect(), home = this.element.getBoundingClientRect();
      const x = over.left - home.left + left, y = over.top - home.top + top;
      const right = x + 16 + this.tip.offsetWidth > home.width;
      this.tip.style.left = `${Math.max(0, right ? x - 14 - this.tip.offsetWidth : x + 14)}px`;
      this.tip.style.top = `${Math.max(0, y - this.tip.offsetHeight / 2)}px`;
    }
  }

  // ---- the page -----------------------------------------------------------------------------

  function restyle(print) {
    printing = print;
    for (const figure of figures) figure.redraw();
  }

  document.addEventListener("DOMContentLoaded", () => {
    const asked = new URLSearchParams(location.search);
    const [from, to] = ["from", "to"].map((name) => Number.parseFloat(asked.get(name)));
    if (to > from) Object.assign(view, { from, to });
    for (const element of document.querySelectorAll("figure.plot[data-plot]")) {
      if (kinds[element.dataset.plot]) figures.push(new Figure(element));
    }
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => restyle(printing));
    matchMedia("print").addEventListener("change", (event) => restyle(event.matches));
    window.addEventListener("beforeprint", () => restyle(true));
    window.addEventListener("afterprint", () => restyle(false));
  });
  document.addEventListener("news", () => figures.forEach((figure) => figure.news()));
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) for (const figure of figures) if (figure.stale) figure.ask();
  });

  return { kinds, figures, make, moment, seconds, count, view, look };
})();
