// A heat map of a large square matrix on a canvas. The server sends as many cells as there are
// pixels; who zooms in gets more detail. Pointer, wheel, buttons and keys do the same; the part that
// is shown is in the page's address, so that it can be sent.
"use strict";
(() => {
  const MUTE = 0, SELF = 1, FIRST = 2, LAST = 255, LEAST = 8;
  const known = new Map();  // from an address of the page's JSON to what it said

  const number = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3));

  async function ask(address) {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  }

  function palette() {
    const style = getComputedStyle(document.documentElement);
    const rgb = (name) => {
      const hex = style.getPropertyValue(name).trim().replace("#", "");
      const six = hex.length === 3 ? [...hex].map((c) => c + c).join("") : hex;
      return [0, 2, 4].map((i) => parseInt(six.slice(i, i + 2), 16));
    };
    const stops = [0, 1, 2, 3, 4, 5, 6].map((i) => rgb(`--toward-${i}`));
    const colours = new Uint32Array(256);
    const put = (level, [r, g, b]) => { colours[level] = (255 << 24) | (b << 16) | (g << 8) | r; };
    for (let level = FIRST; level <= LAST; level++) {
      const at = (level - FIRST) / (LAST - FIRST) * 6, low = Math.min(5, Math.floor(at)), share = at - low;
      put(level, stops[low].map((c, i) => Math.round(c + (stops[low + 1][i] - c) * share)));
    }
    put(MUTE, rgb("--ink"));
    put(SELF, rgb("--sunken"));
    return colours;
  }

  class Heat {
    constructor(figure) {
      this.figure = figure;
      this.canvas = figure.querySelector("canvas");
      this.said = figure.querySelector("output");
      this.count = Number(figure.dataset.count);
      this.part = { x: Number(figure.dataset.x), y: Number(figure.dataset.y), size: Number(figure.dataset.size) };
      this.at = null;  // {x, y}: the pair that is told of, as places in the order that is shown
      this.drag = null;
      this.asked = 0;
      this.listen();
      this.load();
    }

    side() { return Math.max(200, Math.min(this.figure.clientWidth, innerHeight * 0.82, 1400)); }

    query(more) {
      const query = new URLSearchParams(new URL(this.figure.dataset.src, location.href).search);
      for (const name of ["x", "y", "size"]) query.delete(name);
      for (const [name, value] of Object.entries(more)) query.set(name, value);
      return query;
    }

    async page() {
      const source = this.figure.dataset.src;
      if (!known.has(source)) { known.clear(); known.set(source, ask(source)); }
      return known.get(source);
    }

    async load() {
      const turn = ++this.asked;
      const ratio = devicePixelRatio || 1;
      const most = Math.max(16, Math.min(2048, Math.round(this.side() * ratio)));
      try {
        const [cells, data] = await Promise.all([
          ask(`${this.figure.dataset.cells}?${this.query({ ...this.part, most })}`), this.page()]);
        if (turn !== this.asked) return;
        cells.bytes = Uint8Array.from(atob(cells.cells), (c) => c.charCodeAt(0));
        this.cells = cells;
        this.data = data;
        this.draw();
      } catch (error) {
        if (turn === this.asked) this.said.textContent = "The server does not answer; the picture may be old.";
      }
    }

    draw() {
      const { cells, canvas } = this;
      if (!cells || !cells.width) return;
      const ratio = devicePixelRatio || 1, side = Math.floor(this.side());
      canvas.width = canvas.height = Math.round(side * ratio);
      canvas.style.width = canvas.style.height = `${side}px`;
      const colours = palette();
      const image = new ImageData(cells.width, cells.height);
      const pixels = new Uint32Array(image.data.buffer);
      for (let i = 0; i < pixels.length; i++) pixels[i] = colours[cells.bytes[i]];
      const small = document.createElement("canvas");
      small.width = cells.width; small.height = cells.height;
      small.getContext("2d").putImageData(image, 0, 0);
      const pen = canvas.getContext("2d");
      pen.imageSmoothingEnabled = false;
      const shown = cells.width * cells.pairs / this.part.size;  // the last cell may reach beyond
      pen.drawImage(small, 0, 0, canvas.width * shown, canvas.height * shown);
      this.lines(pen);
      this.cursor(pen);
      this.tell();
    }

    // Where another group begins.
    lines(pen) {
      const { data, part, canvas } = this;
      const step = canvas.width / part.size;
      pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--paper");
      pen.lineWidth = devicePixelRatio || 1;
      const edges = (order, from, line) => {
        const found = [];
        for (let i = Math.max(1, from); i < Math.min(order.length, from + part.size); i++) {
          if (data.groups[order[i]] !== data.groups[order[i - 1]]) found.push(i - from);
        }
        if (found.length < part.size / 4 + 2 && found.length * 6 < canvas.width) found.forEach((i) => line(i * step));
      };
      pen.beginPath();
      edges(data.column_order, part.x, (at) => { pen.moveTo(at, 0); pen.lineTo(at, canvas.height); });
      edges(data.row_order, part.y, (at) => { pen.moveTo(0, at); pen.lineTo(canvas.width, at); });
      pen.stroke();
    }

    cursor(pen) {
      if (!this.at) return;
      const step = this.canvas.width / this.part.size;
      const x = (this.at.x - this.part.x) * step, y = (this.at.y - this.part.y) * step;
      const side = Math.max(step, 5), ratio = devicePixelRatio || 1;
      for (const [colour, width] of [["--paper", 4], ["--focus", 2]]) {
        pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue(colour);
        pen.lineWidth = width * ratio;
        pen.strokeRect(x + step / 2 - side / 2, y + step / 2 - side / 2, side, side);
      }
    }

    tell() {
      const { part, data, cells } = this;
      const where = this.figure.querySelector(".heat-where");
      const name = (order, at) => data.names[order[Math.max(0, Math.min(this.count - 1, at))]];
      where.textContent = part.size >= this.count ? `all ${this.count} ranks`
        : `senders ${name(data.row_order, part.y)} to ${name(data.row_order, part.y + part.size - 1)}, `
          + `receivers ${name(data.column_order, part.x)} to ${name(data.column_order, part.x + part.size - 1)}`;
      if (!this.at) { this.said.textContent = "\u00a0"; return; }
      const column = Math.floor((this.at.x - cells.x) / cells.pairs), row = Math.floor((this.at.y - cells.y) / cells.pairs);
      const level = cells.bytes[row * cells.width + column];
      const pair = `${name(data.row_order, this.at.y)} to ${name(data.column_order, this.at.x)}`;
      const about = data.low + (data.high - data.low) * (level - FIRST) / (LAST - FIRST);
      const near = level === LAST ? "at least " : level === FIRST ? "at most " : "about ";
      const rough = near + (data.show === "rate" ? `${number(about)} MiB/s` : `${about < 0 ? "" : "+"}${(100 * about).toFixed(1)} %`);
      const exact = cells.rates ? `${number(cells.rates[row * cells.width + column])} MiB/s` : "";
      const both = [exact, exact && data.show === "rate" ? "" : rough].filter(Boolean).join(", ");
      const value = level === MUTE ? "cannot talk" : level === SELF ? "itself" : both;
      this.said.textContent = cells.pairs === 1 ? `${pair}: ${value}`
        : `${pair}: the ${data.of} of ${cells.pairs} x ${cells.pairs} pairs about it: ${value}`;
    }

    place(event) {
      const box = this.canvas.getBoundingClientRect();
      const share = (at, from, size) => Math.max(0, Math.min(0.9999, (at - from) / size));
      return { x: this.part.x + Math.floor(share(event.clientX, box.left, box.width) * this.part.size),
        y: this.part.y + Math.floor(share(event.clientY, box.top, box.height) * this.part.size) };
    }

    // Show another part, which stays within the matrix.
    show(x, y, size) {
      size = Math.max(Math.min(LEAST, this.count), Math.min(this.count, Math.round(size)));
      const fit = (at) => Math.max(0, Math.min(this.count - size, Math.round(at)));
      const part = { x: fit(x), y: fit(y), size };
      if (part.x === this.part.x && part.y === this.part.y && part.size === this.part.size) return;
      this.part = part;
      const address = new URL(location.href);
      for (const [name, value] of Object.entries(part)) {
        if (size < this.count) address.searchParams.set(name, value); else address.searchParams.delete(name);
      }
      history.replaceState(history.state, "", address);
      this.load();
    }

    zoom(factor, about) {
      const { x, y, size } = this.part;
      const to = Math.max(Math.min(LEAST, this.count), Math.min(this.count, size * factor));
      const centre = about || { x: x + size / 2, y: y + size / 2 };
      this.show(centre.x - (centre.x - x) * to / size, centre.y - (centre.y - y) * to / size, to);
    }

    point(at) { this.at = at; if (this.cells && this.data) this.draw(); }

    listen() {
      const { canvas, figure } = this;
      canvas.addEventListener("pointermove", (event) => {
        if (this.drag && event.buttons) {
          const step = canvas.clientWidth / this.part.size;
          this.drag.moved = true;
          this.show(this.drag.x - (event.clientX - this.drag.left) / step, this.drag.y - (event.clientY - this.drag.top) / step, this.part.size);
        } else this.point(this.place(event));
      });
      canvas.addEventListener("pointerdown", (event) => {
        this.drag = { left: event.clientX, top: event.clientY, x: this.part.x, y: this.part.y, moved: false };
      });
      canvas.addEventListener("pointerup", () => { this.drag = null; });
      canvas.addEventListener("dblclick", (event) => this.zoom(event.shiftKey ? 2 : 0.5, this.place(event)));
      canvas.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && document.activeElement !== figure) return;  // else the page scrolls
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.place(event));
      }, { passive: false });
      figure.addEventListener("click", (event) => {
        const button = event.target.closest("[data-zoom]");
        if (!button) return;
        if (button.dataset.zoom === "all") this.show(0, 0, this.count);
        else this.zoom(button.dataset.zoom === "in" ? 0.5 : 2, this.at);
      });
      figure.addEventListener("keydown", (event) => this.key(event));
    }

    key(event) {
      if (event.target !== this.figure) return;
      const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      const { x, y, size } = this.part;
      const from = this.at || { x: x + Math.floor(size / 2), y: y + Math.floor(size / 2) };
      if (moves[event.key]) {
        const step = (this.cells?.pairs || 1) * (event.shiftKey ? 10 : 1);
        const fit = (at) => Math.max(0, Math.min(this.count - 1, at));
        const at = { x: fit(from.x + moves[event.key][0] * step), y: fit(from.y + moves[event.key][1] * step) };
        const inside = (value, low) => Math.min(low, value) + Math.max(0, value - (low + size - 1));
        this.at = at;
        this.show(inside(at.x, x), inside(at.y, y), size);
        this.point(at);
      } else if (event.key === "+" || event.key === "=") this.zoom(0.5, from);
      else if (event.key === "-") this.zoom(2, from);
      else if (event.key === "Home" || event.key === "0") this.show(0, 0, this.count);
      else return;
      event.preventDefault();
    }
  }

  let heat = null;

  function start() {
    const figure = document.querySelector("figure.heat");
    if (figure && (!heat || heat.figure !== figure)) heat = new Heat(figure);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a.heat-go");
    if (!link || !heat || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const query = new URL(link.href).searchParams;
    const [x, y, size] = ["x", "y", "size"].map((name) => Number(query.get(name) || 0));
    heat.show(x, y, size);
    heat.figure.focus({ preventScroll: true });
    heat.figure.scrollIntoView({ block: "nearest" });
  });
  document.addEventListener("replaced", start);
  document.addEventListener("news", start);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => heat?.draw());
  addEventListener("resize", () => heat?.draw());
  start();
})();
