// A plot over time on a canvas: a scale of time below it, a scale of values at its left, a line under the
// pointer in all plots of the page, and a span that can be dragged. What stands between the scales is
// painted by `paint(plot)`. Places on the canvas are in its own pixels, those of the pointer in CSS pixels.
"use strict";
window.TimePlot = (() => {
  const FONT = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
  const TOP = 8, RIGHT = 12, LEFT = 62, BELOW = 46, BELOW_BARE = 6;
  const TIME_SPACE = 70;  // CSS pixels from a time below the plot to the next
  const LEAST_DRAG = 4;
  const MINUTE = 60, HOUR = 3600, DAY = 86400;
  const TIME_STEPS = [
    ...[0.001, 0.01, 0.1].flatMap((size) => [1, 2, 5].map((n) => n * size)),
    ...[1, 2, 5, 10, 15, 30].flatMap((n) => [n, n * MINUTE]), ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
    ...[1, 2, 7, 14, 28, 91, 182, 364, 728, 1820, 3640].map((n) => n * DAY),
  ].sort((one, other) => one - other);
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

  const onPage = new Set();
  const two = (n) => String(n).padStart(2, "0");

  // The first of some steps, or of 1, 2, 5, 10, ..., that is wide enough.
  function stepOf(least, steps) {
    if (steps) return steps.find((step) => step >= least) ?? steps.at(-1);
    const power = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least) ?? 10 * power;
  }

  // The whole multiples of a step within two values.
  function multiples(low, high, step) {
    const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  }

  // A time and what stands below it where that changes, both as the server's clock shows them.
  function wordsOf(t, zone, step) {
    const at = new Date((t + zone) * 1000);
    const day = `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
    const minute = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`, second = two(at.getUTCSeconds());
    if (step >= DAY) return [day, String(at.getUTCFullYear())];
    if (step >= MINUTE) return [minute, day];
    if (step >= 1) return [`${minute}:${second}`, day];
    return [`${second}.${String(at.getUTCMilliseconds()).padStart(3, "0")}`, minute];
  }

  function part(name, hidden = false) {
    const element = document.createElement("div");
    element.className = name;
    element.hidden = hidden;
    return element;
  }

  class TimePlot {
    // width, height: CSS pixels. bare: no times below. log: a logarithmic scale. range(most): the least and
    // the greatest value of the scale, as `most` is the greatest that can be seen. steps: of the scale.
    // label(value): its words. colour(name), zone(): seconds. paint(plot), painted(), point(plot): what is
    // under the pointer, pointed at again. select(from, to), all(): the window of time that a person wants.
    constructor(holder, settings) {
      Object.assign(this, { bare: false, log: false, crossed: false }, settings);
      this.root = part("time-plot");
      this.canvas = document.createElement("canvas");
      this.canvas.setAttribute("aria-hidden", "true");
      this.over = part("over");
      this.upright = part("upright", true);
      this.level = part("level", true);
      this.span = part("span", true);
      this.over.append(this.span, this.upright, this.level);
      this.root.append(this.canvas, this.over);
      this.ctx = this.canvas.getContext("2d");
      this.pointer = null;  // CSS pixels within the scales
      this.dragged = false;
      [this.from, this.to, this.t, this.values] = [0, 1, [], []];
      holder.append(this.root);
      onPage.add(this);
      this.listen();
      this.resize(this.width);
    }

    destroy() {
      onPage.delete(this);
      this.root.remove();
    }

    // Its values by their times, which ascend; null is none.
    setData(t, values) {
      [this.t, this.values] = [t, values];
      this.redraw();
    }

    look(from, to) {
      [this.from, this.to] = [from, to];
      this.redraw();
    }

    resize(width) {
      this.width = width;
      this.redraw();
    }

    // Several changes at once are one painting, which is done before the browser shows or prints anything.
    redraw() {
      if (this.waits) return;
      this.waits = true;
      queueMicrotask(() => {
        this.waits = false;
        if (onPage.has(this)) this.draw();
      });
    }

    // ---- places ---------------------------------------------------------------------------------

    x(t) { return this.box.left + (t - this.from) / (this.to - this.from) * this.box.width; }
    y(value) {
      const share = this.log
        ? Math.log(value / this.low) / Math.log(this.high / this.low) : (value - this.low) / (this.high - this.low);
      return this.box.top + (1 - share) * this.box.height;
    }
    timeAt(left) { return this.from + left * this.ratio / this.box.width * (this.to - this.from); }

    // The greatest value, and the least above zero, in the window of time; what began before it lasts into it.
    extremes() {
      let least = Infinity, most = 0;
      for (let i = 0; i < this.t.length && this.t[i] <= this.to; i++) {
        const value = this.values[i];
        if (value === null || (i + 1 < this.t.length && this.t[i + 1] < this.from)) continue;
        if (value > most) most = value;
        if (value > 0 && value < least) least = value;
      }
      return [least, most];
    }

    measure() {
      this.ratio = devicePixelRatio;
      const [width, height] = [this.width, this.height - TOP - (this.bare ? BELOW_BARE : BELOW)];
      this.over.style.cssText = `left: ${LEFT}px; top: ${TOP}px; width: ${width - LEFT - RIGHT}px; height: ${height}px`;
      const [left, top] = [LEFT * this.ratio, TOP * this.ratio];
      this.box = { left, top, width: (width - LEFT - RIGHT) * this.ratio, height: height * this.ratio };
      const [least, most] = this.extremes();
      if (!this.log) [this.low, this.high] = this.range(most);
      else if (!most) [this.low, this.high] = [0.1, 1];
      else {  // to a whole first digit
        const digit = (value, round) => { const power = 10 ** Math.floor(Math.log10(value)); return round(value / power) * power; };
        [this.low, this.high] = [digit(least, Math.floor), digit(most * 1.05, Math.ceil)];
      }
    }

    // ---- painting -------------------------------------------------------------------------------

    draw() {
      this.measure();
      const { canvas, ctx, ratio } = this;
      [canvas.width, canvas.height] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
      [canvas.style.width, canvas.style.height] = [`${this.width}px`, `${this.height}px`];
      ctx.clearRect(0, 0, canvas.width, canvas.height);
      ctx.font = FONT.replace("12", String(12 * ratio));
      this.drawValues();
      this.drawTimes();
      this.paint(this);
      this.painted();
    }

    line(x, y, width, height) {
      this.ctx.fillStyle = this.colour("line");
      this.ctx.fillRect(Math.round(x), Math.round(y), Math.max(1, width), Math.max(1, height));
    }

    drawValues() {
      const { ctx, box, ratio } = this;
      ctx.textAlign = "right";
      ctx.textBaseline = "middle";
      for (const value of this.marks()) {
        const y = this.y(value);
        this.line(box.left, y, box.width, ratio);
        ctx.fillStyle = this.colour("quiet");
        ctx.fillText(this.label(value), box.left - 8 * ratio, y);
      }
    }

    marks() {
      const { low, high, box, ratio } = this, space = (this.bare ? 24 : 34) * ratio;
      if (!this.log) return multiples(low, high, stepOf((high - low) * space / box.height, this.steps));
      const [first, last] = [low, high].map((value) => Math.floor(Math.log10(value) + 1e-9));
      const decade = box.height / Math.log10(high / low), digits = decade > 3 * space ? [1, 2, 5] : [1];
      const powers = Array.from({ length: last - first + 1 }, (_, i) => first + i);
      return powers.flatMap((power) => digits.map((n) => n * 10 ** power)).filter((value) => value >= low && value <= high);
    }

    drawTimes() {
      const { ctx, box, ratio } = this, zone = this.zone();
      const step = stepOf((this.to - this.from) * TIME_SPACE * ratio / box.width, TIME_STEPS);
      const bottom = box.top + box.height;
      let before = "";
      ctx.textAlign = "center";
      ctx.textBaseline = "top";
      for (const local of multiples(this.from + zone, this.to + zone, step)) {
        const x = this.x(local - zone);
        this.line(x, box.top, ratio, box.height + (this.bare ? 0 : 6 * ratio));
        if (this.bare) continue;
        const [time, below] = wordsOf(local - zone, zone, step);
        ctx.fillStyle = this.colour("quiet");
        ctx.fillText(time, x, bottom + 10 * ratio);
        if (below !== before) ctx.fillText(below, x, bottom + 26 * ratio);
        before = below;
      }
    }

    // ---- the pointer ----------------------------------------------------------------------------

    listen() {
      const { over } = this;
      let start = null;
      const place = (event) => {
        const box = over.getBoundingClientRect();
        return [Math.max(0, Math.min(box.width, event.clientX - box.left)), event.clientY - box.top];
      };
      const end = () => {
        start = null;
        this.span.hidden = true;
      };
      over.addEventListener("pointerdown", (event) => {
        this.dragged = false;
        if (event.button || event.pointerType === "touch") return;  // fingers scroll the page
        [start] = place(event);
        over.setPointerCapture(event.pointerId);
      });
      over.addEventListener("pointermove", (event) => {
        const [left, top] = (this.pointer = place(event));
        if (start !== null && Math.abs(left - start) >= LEAST_DRAG) {
          this.span.hidden = false;
          this.span.style.cssText = `left: ${Math.min(start, left)}px; width: ${Math.abs(left - start)}px`;
        }
        for (const plot of onPage) plot.follow(this.timeAt(left), plot === this ? top : null);
        this.point(this);
      });
      over.addEventListener("pointerup", (event) => {
        const [left] = place(event), span = start === null ? [] : [start, left].sort((one, other) => one - other);
        end();
        this.dragged = span.length > 0 && span[1] - span[0] >= LEAST_DRAG;
        if (this.dragged) this.select(...span.map((at) => this.timeAt(at)));
      });
      over.addEventListener("pointercancel", end);
      over.addEventListener("pointerleave", () => {
        this.pointer = null;
        for (const plot of onPage) plot.follow(null, null);
      });
      over.addEventListener("dblclick", () => this.all());
    }

    // Show the line of a time, and that of the pointer's height where both cross.
    follow(t, top) {
      const left = t === null ? -1 : (this.x(t) - this.box.left) / this.ratio;
      this.upright.hidden = left < 0 || left > this.box.width / this.ratio;
      this.upright.style.left = `${left}px`;
      this.level.hidden = top === null || !this.crossed;
      this.level.style.top = `${top}px`;
    }
  }
  return TimePlot;
})();
