// The plot of runs: each by the start of its script and its elapsed time; those that stand out in
// colours and shapes of their own. A hundred thousand are drawn at once: each pixel once, found again
// by a grid. Tests and classes can be hidden, a click opens a run. See plot.js for the rest.
"use strict";
(() => {
  const { kinds, make, moment, seconds, count } = window.plots;

  const TIMES = [
    ...[-3, -2, -1, 0].flatMap((power) => [1, 2, 5].map((n) => n * 10 ** power)),
    10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 345600, 864000,
  ];
  const SERIES = 8, MOST_TOGGLES = 16, NEAR = 22, CELL = 24;
  const SHAPES = {
    walltime: { colour: "ink", name: "at walltime", draw: (c, x, y, r) => c.rect(x - r, y - r, 2 * r, 2 * r) },
    slow: { colour: "slow", name: "slow", draw: (c, x, y, r) => { c.moveTo(x, y - 1.2 * r); c.lineTo(x + 1.15 * r, y + r); c.lineTo(x - 1.15 * r, y + r); c.closePath(); } },
    short: { colour: "running", name: "far too short", draw: (c, x, y, r) => { c.moveTo(x, y + 1.2 * r); c.lineTo(x + 1.15 * r, y - r); c.lineTo(x - 1.15 * r, y - r); c.closePath(); } },
    failed: { colour: "failed", name: "failed", open: true, draw: (c, x, y, r) => { c.moveTo(x - r, y - r); c.lineTo(x + r, y + r); c.moveTo(x + r, y - r); c.lineTo(x - r, y + r); } },
  };
  const seriesColour = (place) => `series-${(place % SERIES) + 1}`;

  // Which tests and which classes are hidden, by their positions.
  function hidden(figure) {
    const { tests, kinds: names } = figure.data;
    return [tests.map((_, place) => figure.hidden.has("t" + place)), names.map((name) => figure.hidden.has("k" + name))];
  }

  // Where each point is, in device pixels; x is NaN where it is not shown.
  function places(figure, plot) {
    const { t, y, test, kind } = figure.data, n = t.length, zero = figure.data.axis.start, [tests, kinds] = hidden(figure);
    const xs = new Float32Array(n), ys = new Float32Array(n);
    const { from, to } = plot, { left, width } = plot.box, per = width / (to - from);
    const low = plot.y(figure.log ? 1 : 0), slope = plot.y(figure.log ? 10 : 1) - low;
    for (let i = 0; i < n; i++) {
      const at = zero + t[i];
      xs[i] = tests[test[i]] || kinds[kind[i]] || at < from || at > to ? Number.NaN : left + (at - from) * per;
      ys[i] = low + slope * (figure.log ? Math.log10(Math.max(y[i], 1e-3)) : y[i]);
    }
    return { xs, ys };
  }

  function paintRuns(figure, plot) {
    const { test, kind, kinds: names, tests } = figure.data, { ctx } = plot, { left, top, width, height } = plot.box;
    const { xs, ys } = places(figure, plot);
    figure.at = { xs, ys, cells: null };
    ctx.save();
    ctx.beginPath();
    ctx.rect(left - 6, top - 6, width + 12, height + 12);
    ctx.clip();
    // Normal runs: small squares, each pixel once, however many runs it has.
    const size = Math.max(2, Math.round((xs.length > 20000 ? 2 : xs.length > 3000 ? 2.5 : 3.5) * devicePixelRatio));
    const columns = Math.ceil(width) + 8, taken = new Uint8Array(columns * (Math.ceil(height) + 8));
    const paths = tests.map(() => new Path2D());
    for (let i = 0; i < xs.length; i++) {
      if (kind[i] !== 0 || !(xs[i] >= 0)) continue;
      const x = Math.round(xs[i]), y = Math.round(ys[i]), cell = (y - Math.floor(top) + 4) * columns + x - Math.floor(left) + 4;
      if (taken[cell] === (test[i] % 255) + 1) continue;
      taken[cell] = (test[i] % 255) + 1;
      paths[test[i]].rect(x - size / 2, y - size / 2, size, size);
    }
    ctx.globalAlpha = xs.length > 5000 ? 0.75 : 0.9;
    paths.forEach((path, place) => { ctx.fillStyle = figure.colour(seriesColour(place)); ctx.fill(path); });
    ctx.globalAlpha = 1;
    const r = (xs.length > 20000 ? 3 : 4) * devicePixelRatio;
    for (const [name, shape] of Object.entries(SHAPES)) {
      const place = names.indexOf(name), path = new Path2D();
      for (let i = 0; i < xs.length; i++) if (kind[i] === place && xs[i] >= 0) shape.draw(path, xs[i], ys[i], r);
      paintShape(ctx, path, shape, figure.colour, devicePixelRatio);
    }
    if (figure.chosen >= 0 && xs[figure.chosen] >= 0) {
      ctx.strokeStyle = figure.colour("ink");
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.beginPath();
      ctx.arc(xs[figure.chosen], ys[figure.chosen], 8 * devicePixelRatio, 0, 7);
      ctx.stroke();
    }
    ctx.restore();
  }

  function paintShape(ctx, path, shape, colour, ratio) {
    if (shape.open) {
      ctx.strokeStyle = colour(shape.colour);
      ctx.lineWidth = 1.75 * ratio;
      ctx.stroke(path);
    } else {
      ctx.fillStyle = colour(shape.colour);
      ctx.fill(path);
    }
  }

  // The run next to a place in CSS pixels, -1 where none is near.
  function nearest(figure, plot, left, top) {
    const { xs, ys } = figure.at, ratio = devicePixelRatio, cell = CELL * ratio;
    if (!figure.at.cells) {
      const cells = (figure.at.cells = new Map());
      for (let i = 0; i < xs.length; i++) {
        if (!(xs[i] >= 0)) continue;
        const key = Math.floor(xs[i] / cell) * 65536 + Math.floor(ys[i] / cell);
        const list = cells.get(key);
        if (list) list.push(i); else cells.set(key, [i]);
      }
    }
    const x = left * ratio + plot.box.left, y = top * ratio + plot.box.top;
    let best = -1, least = (NEAR * ratio) ** 2;
    for (let dx = -1; dx <= 1; dx++) {
      for (let dy = -1; dy <= 1; dy++) {
        for (const i of figure.at.cells.get((Math.floor(x / cell) + dx) * 65536 + Math.floor(y / cell) + dy) || []) {
          const away = (xs[i] - x) ** 2 + (ys[i] - y) ** 2 - (figure.data.kind[i] ? 9 : 0);
          if (away < least) [best, least] = [i, away];
        }
      }
    }
    return best;
  }

  function linesOf(data, i) {
    const kind = data.kinds[data.kind[i]];
    const what = kind === "normal" ? "" : ` (${SHAPES[kind]?.name || kind})`;
    return [`${data.tests[data.test[i]]}: ${seconds(data.y[i])}${what}`, `started ${moment(data.axis.start + data.t[i])}`, `run ${data.run[i]}`];
  }

  const open = (figure, i) => { location.href = figure.element.dataset.run + encodeURIComponent(figure.data.run[i]); };

  // Choose the next run that can be seen, forwards or backwards.
  function step(figure, by) {
    const plot = figure.plots[0], { xs } = figure.at, n = xs.length;
    const inside = (i) => xs[i] >= plot.box.left && xs[i] <= plot.box.left + plot.box.width;
    let i = figure.chosen < 0 ? (by > 0 ? -1 : n) : figure.chosen;
    do i += by; while (i >= 0 && i < n && !inside(i));
    if (i < 0 || i >= n) return;
    figure.chosen = i;
    plot.redraw();
    const ratio = devicePixelRatio, left = (figure.at.xs[i] - plot.box.left) / ratio, top = (figure.at.ys[i] - plot.box.top) / ratio;
    const lines = linesOf(figure.data, i);
    figure.tell(lines, plot, left, top);
    figure.said.replaceChildren(`${lines.join(", ")}; Enter opens it`);
  }

  // What can be hidden, each with its mark.
  function toggles(figure, data) {
    const ofTests = new Uint32Array(data.tests.length), ofKinds = new Uint32Array(data.kinds.length), counts = new Map();
    for (let i = 0; i < data.kind.length; i++) {
      if (data.kind[i]) ofKinds[data.kind[i]]++; else ofTests[data.test[i]]++;
    }
    ofTests.forEach((n, place) => counts.set("t" + place, n));
    ofKinds.forEach((n, place) => counts.set("k" + data.kinds[place], n));
    const buttons = [];
    const toggle = (key, name, mark) => {
      const button = make("button", { type: "button", class: "toggle", "aria-pressed": String(!figure.hidden.has(key)), "data-key": key });
      const icon = make("canvas", { width: 14 * devicePixelRatio, height: 14 * devicePixelRatio, "aria-hidden": "true" });
      icon.style.width = icon.style.height = "14px";
      const ctx = icon.getContext("2d");
      ctx.scale(devicePixelRatio, devicePixelRatio);
      mark(ctx);
      button.append(icon, `${name} ${count(counts.get(key) || 0)}`);
      button.addEventListener("click", () => {
        if (!figure.hidden.delete(key)) figure.hidden.add(key);
        button.setAttribute("aria-pressed", String(!figure.hidden.has(key)));
        figure.plots[0].setData(...columnsOfRuns(figure));
      });
      buttons.push(button);
    };
    data.tests.slice(0, MOST_TOGGLES).forEach((name, place) => toggle("t" + place, name, (ctx) => {
      ctx.fillStyle = figure.colour(seriesColour(place));
      ctx.fillRect(4, 4, 6, 6);
    }));
    for (const [name, shape] of Object.entries(SHAPES)) {
      if (!counts.get("k" + name)) continue;
      toggle("k" + name, shape.name, (ctx) => {
        const path = new Path2D();
        shape.draw(path, 7, 7, 4);
        paintShape(ctx, path, shape, figure.colour, 1);
      });
    }
    const log = make("button", { type: "button", class: "log", "aria-pressed": String(figure.log) }, "log");
    log.title = "A logarithmic scale";
    log.addEventListener("click", () => {
      figure.log = !figure.log;
      figure.drop();
      figure.draw();
      figure.tools.lastChild.focus();
    });
    const more = data.tests.length - MOST_TOGGLES;
    figure.tools.replaceChildren(...buttons, ...(more > 0 ? [`and ${more} more tests `] : []), log);
  }

  function columnsOfRuns(figure) {
    const { t, y, test, kind, axis } = figure.data, [tests, kinds] = hidden(figure);
    const shown = (i) => !tests[test[i]] && !kinds[kind[i]];
    return [t.map((at) => axis.start + at), y.map((value, i) => (shown(i) ? (figure.log ? Math.max(value, 1e-3) : value) : null))];
  }

  kinds.elapsed = {
    nothing: "No run has ended yet.",
    keys: ", n and p go from run to run, Enter opens one",
    empty: (data) => !data.t.length,
    draw(figure, data) {
      figure.hidden ||= new Set();
      figure.log ??= false;
      const known = figure.ids && figure.chosen >= 0 ? figure.ids[figure.chosen] : null;
      figure.ids = data.run;
      figure.chosen = known ? data.run.indexOf(known) : -1;
      toggles(figure, data);
      if (figure.plots.length) return figure.plots[0].setData(...columnsOfRuns(figure));
      const plot = figure.add({
        height: Math.round(Math.min(440, Math.max(300, figure.width() * 0.3))),
        log: figure.log, range: (most) => [0, (most || 1) * 1.06], steps: TIMES, crossed: true,
        label: (v) => (v === 0 ? "0" : seconds(v)), paint: (plot) => paintRuns(figure, plot),
      });
      plot.over.addEventListener("click", (event) => {
        const i = plot.dragged ? -1 : nearest(figure, plot, event.offsetX, event.offsetY);
        if (i >= 0) open(figure, i);
      });
      plot.setData(...columnsOfRuns(figure));
    },
    restyle: (figure) => { if (figure.data?.ready && figure.plots.length) toggles(figure, figure.data); },
    point(figure, plot, data) {
      const i = nearest(figure, plot, ...plot.pointer);
      plot.over.style.cursor = i >= 0 ? "pointer" : "crosshair";
      return i < 0 ? null : linesOf(data, i);
    },
    key: (figure, key) => ({
      n: () => step(figure, 1), p: () => step(figure, -1),
      Enter: () => { if (figure.chosen >= 0) open(figure, figure.chosen); },
    })[key],
  };
})();
