// Kinds of plots over time: utilisation (stacked shares), in-flight and load (steps, a strip for each
// test or target). A kind says when there is nothing to draw, draws, and tells what is under the
// pointer. See plot.js for what they share.
"use strict";
(() => {
  const { kinds, make, moment, seconds, count, options } = window.plots;

  // ---- utilisation ----------------------------------------------------------------------------

  // From the bottom up, with the colours that style.css gives them as .use-....
  const USES = [
    ["accepted", "pass"], ["going", "running"], ["starting", "series-6"], ["kept", "series-5"], ["failed", "failed"],
    ["down", "ink"], ["unfilled", "series-4"], ["drained", "strong-line"], ["idle", "line"],
  ];

  function paintUses(figure, u) {
    const { t, step, shares } = figure.data, { ctx } = u, { top, height, left, width } = u.bbox;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    const edges = t.map((at) => Math.round(u.valToPos(at, "x", true)));
    edges.push(Math.round(u.valToPos(t[t.length - 1] + step, "x", true)));
    const base = new Float64Array(t.length);
    for (const [use, colour] of USES) {
      const part = shares[use];
      if (!part) continue;
      ctx.fillStyle = figure.colour(colour);
      for (let i = 0; i < t.length; i++) {
        if (!part[i]) continue;
        const low = Math.round(top + height * (1 - base[i]));
        base[i] += part[i];
        const high = Math.round(top + height * (1 - base[i]));
        ctx.fillRect(edges[i], high, Math.max(1, edges[i + 1] - edges[i]), low - high);
      }
    }
    ctx.restore();
    paintWindows(figure, u);
  }

  // Blackouts and planned outages: a bar along the top.
  function paintWindows(figure, u) {
    const { ctx } = u, { left, width, top } = u.bbox, thick = 4 * devicePixelRatio;
    for (const { start, end, kind } of figure.data.windows || []) {
      const from = Math.max(left, u.valToPos(start, "x", true)), to = Math.min(left + width, u.valToPos(end, "x", true));
      if (to <= from) continue;
      ctx.fillStyle = figure.colour(kind === "outage" ? "quiet" : "slow");
      ctx.fillRect(from, top - thick, to - from, thick);
    }
  }
  const windowsAt = (data, t) => (data.windows || []).filter(({ start, end }) => start <= t && t < end).map(({ text }) => text);

  kinds.utilisation = {
    finer: true,
    nothing: "Nothing was available yet.",
    empty: (data) => !data.t.length,
    draw(figure, data) {
      const columns = [data.t, data.t.map(() => 1)];
      if (figure.plots.length) return figure.plots[0].setData(columns, false);
      const made = options(figure, {
        height: 240, y: { range: [0, 1] }, values: (u, at) => at.map((v) => `${Math.round(100 * v)} %`),
        series: [{}, { paths: () => null, points: { show: false } }], draw: (u) => paintUses(figure, u),
      });
      figure.add(new uPlot(made, columns, figure.holder));
    },
    point(figure, u, data) {
      const t = u.posToVal(u.cursor.left, "x"), i = Math.floor((t - data.t[0]) / data.step);
      if (!(i >= 0 && i < data.t.length)) return null;
      const there = USES.filter(([use]) => data.shares[use]?.[i]);
      const lines = there.map(([use]) => `${use} ${(100 * data.shares[use][i]).toFixed(1)} %`);
      return [`${moment(data.t[i])}, ${seconds(data.step)}`, ...(lines.length ? lines : ["the trial's clock stood still"]), ...windowsAt(data, t)];
    },
  };

  // ---- strips of steps ------------------------------------------------------------------------

  const STRIP = 66, AXIS = 40, MOST_STRIPS = 40;

  function dashed(figure, u, value, colour) {
    if (!value) return;
    const { ctx } = u, y = Math.round(u.valToPos(value, "y", true)) + 0.5;
    if (y < u.bbox.top - 1) return;
    ctx.save();
    ctx.strokeStyle = figure.colour(colour);
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(u.bbox.left, y);
    ctx.lineTo(u.bbox.left + u.bbox.width, y);
    ctx.stroke();
    ctx.restore();
  }

  // Those of a test; beside all tests those of a node, a run, a gauge or the trial.
  const alertsOf = (data, line) => data.alerts.filter(({ test }) =>
    (line.name ? test === line.name : !data.lines.some(({ name }) => name && name === test)));

  function paintStrip(figure, u, place) {
    const { data } = figure, line = data.lines[place];
    if (!line) return;
    dashed(figure, u, line.expected, "ink");
    dashed(figure, u, line.most, "failed");
    if (!place) paintWindows(figure, u);
    const { ctx } = u, r = 5 * devicePixelRatio, { left, width, top } = u.bbox;
    ctx.fillStyle = figure.colour("failed");
    ctx.strokeStyle = figure.colour("panel");
    ctx.lineWidth = devicePixelRatio;
    for (const { t } of alertsOf(data, line)) {
      const x = u.valToPos(t, "x", true), y = top + r;
      if (x < left || x > left + width) continue;
      ctx.beginPath();
      ctx.moveTo(x, y - r);
      ctx.lineTo(x + r, y);
      ctx.lineTo(x, y + r);
      ctx.lineTo(x - r, y);
      ctx.closePath();
      ctx.fill();
      ctx.stroke();
    }
  }

  // At time t the value of a line of steps; null where there is none.
  function valueAt(line, t) {
    let low = 0, high = line.t.length - 1;
    if (high < 0 || t < line.t[0] || t > line.t[high]) return null;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (line.t[middle] <= t) low = middle; else high = middle - 1;
    }
    return line.y[low];
  }

  // What a strip must reach up to: a bound, too, unless it is far off.
  function roof(line, max) {
    const bounds = [line?.expected || 0, line?.most && line.most < 3 * max ? line.most : 0];
    return Math.max(max, ...bounds, 1);
  }

  const columnsOf = (line) => (line.t.length ? [line.t, line.y] : [[0], [null]]);

  function strip(figure, data, place) {
    const line = data.lines[place], last = place === Math.min(data.lines.length, MOST_STRIPS) - 1;
    const name = make("p", { class: "strip-name" }, make("span", {}, line.name || "all tests"));
    const told = [];
    if (line.expected) told.push(`target ${count(line.expected)}`);
    if (line.most) told.push(`safe ${count(line.most)}`);
    name.append(make("span", { class: "quiet" }, told.join(", ")));
    figure.holder.append(name);
    const fill = (u) => {
      const [r, g, b] = rgb(figure.colour("accent"));
      return `rgba(${r}, ${g}, ${b}, 0.16)`;
    };
    const made = options(figure, {
      height: STRIP + (last ? AXIS : 0), bare: !last,
      y: { range: (u, min, max) => [0, roof(figure.data.lines[place], max || 0) * 1.08] },
      values: (u, at) => at.map((v) => (v >= 1e6 ? `${+(v / 1e6).toPrecision(3)} M` : v % 1 ? "" : count(v))),
      series: [{}, {
        stroke: () => figure.colour("accent"), width: 1.25, fill, points: { show: false },
        paths: uPlot.paths.stepped({ align: 1 }),
      }],
      draw: (u) => paintStrip(figure, u, place),
    });
    const u = figure.add(new uPlot(made, columnsOf(line), figure.holder));
    u.place = place;
  }

  function rgb(colour) {
    const hex = /^#(..)(..)(..)$/.exec(colour) || [0, "88", "88", "88"];
    return hex.slice(1).map((pair) => Number.parseInt(pair, 16));
  }

  const strips = {
    nothing: "Nothing ran yet.",
    empty: (data) => !data.lines.some((line) => line.t.length),
    draw(figure, data) {
      const names = JSON.stringify(data.lines.map(({ name, expected, most }) => [name, expected, most]));
      if (figure.names === names && figure.plots.length) {
        figure.plots.forEach((u) => u.setData(columnsOf(data.lines[u.place]), false));
        return;
      }
      figure.names = names;
      figure.drop();
      data.lines.slice(0, MOST_STRIPS).forEach((line, place) => strip(figure, data, place));
      if (data.lines.length > MOST_STRIPS) figure.holder.append(make("p", { class: "quiet" }, `and ${data.lines.length - MOST_STRIPS} more`));
    },
    point(figure, u, data) {
      const line = data.lines[u.place], t = u.posToVal(u.cursor.left, "x"), value = valueAt(line, t);
      const near = Math.abs(u.posToVal(7, "x") - u.posToVal(0, "x"));
      const alerts = alertsOf(data, line).filter((alert) => Math.abs(alert.t - t) < near).slice(0, 3);
      const what = value === null || value === undefined ? "the trial's clock stood still" : count(value);
      const of = line.expected ? ` of ${count(line.expected)}` : line.most ? `, safe is ${count(line.most)}` : "";
      return [`${line.name || "all tests"}: ${what}${of}`, moment(t), ...alerts.map(({ kind, text }) => `${kind}: ${text}`), ...windowsAt(data, t)];
    },
  };
  kinds["in-flight"] = strips;
  kinds.load = { ...strips, nothing: "No run was placed on a target yet." };
})();
