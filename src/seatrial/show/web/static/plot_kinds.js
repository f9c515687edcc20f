// Kinds of plots over time: utilisation (stacked shares), in-flight and load (steps, a strip for each
// test or target). A kind says when there is nothing to draw, draws, and tells what is under the
// pointer. See plot.js for what they share.
"use strict";
(() => {
  const { kinds, make, moment, seconds, count } = window.plots;

  // ---- utilisation ----------------------------------------------------------------------------

  // From the bottom up, with the colours that style.css gives them as .use-....
  const USES = [
    ["accepted", "pass"], ["going", "running"], ["starting", "series-6"], ["kept", "series-5"], ["failed", "failed"],
    ["down", "ink"], ["unfilled", "series-4"], ["drained", "strong-line"], ["idle", "line"],
  ];

  function paintUses(figure, plot) {
    const { t, step, shares } = figure.data, { ctx } = plot, { top, height, left, width } = plot.box;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    const edges = t.map((at) => Math.round(plot.x(at)));
    edges.push(Math.round(plot.x(t[t.length - 1] + step)));
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
    paintWindows(figure, plot);
  }

  // Blackouts and planned outages: a bar along the top.
  function paintWindows(figure, plot) {
    const { ctx } = plot, { left, width, top } = plot.box, thick = 4 * devicePixelRatio;
    for (const { start, end, kind } of figure.data.windows || []) {
      const from = Math.max(left, plot.x(start)), to = Math.min(left + width, plot.x(end));
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
      const plot = figure.plots[0] ?? figure.add({
        height: 240, range: () => [0, 1], label: (v) => `${Math.round(100 * v)} %`, paint: (plot) => paintUses(figure, plot),
      });
      plot.setData(data.t, data.t.map(() => 1));
    },
    point(figure, plot, data) {
      const t = plot.timeAt(plot.pointer[0]), i = Math.floor((t - data.t[0]) / data.step);
      if (!(i >= 0 && i < data.t.length)) return null;
      const there = USES.filter(([use]) => data.shares[use]?.[i]);
      const lines = there.map(([use]) => `${use} ${(100 * data.shares[use][i]).toFixed(1)} %`);
      return [`${moment(data.t[i])}, ${seconds(data.step)}`, ...(lines.length ? lines : ["the trial's clock stood still"]), ...windowsAt(data, t)];
    },
  };

  // ---- strips of steps ------------------------------------------------------------------------

  const STRIP = 66, AXIS = 40, MOST_STRIPS = 40;

  function dashed(figure, plot, value, colour) {
    if (!value) return;
    const { ctx } = plot, y = Math.round(plot.y(value)) + 0.5;
    if (y < plot.box.top - 1) return;
    ctx.save();
    ctx.strokeStyle = figure.colour(colour);
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(plot.box.left, y);
    ctx.lineTo(plot.box.left + plot.box.width, y);
    ctx.stroke();
    ctx.restore();
  }

  // Each value from its time to the next one's; none leaves a gap.
  function paintSteps(figure, plot) {
    const { ctx, box, t, values } = plot, last = t.length - 1, ground = box.top + box.height;
    const line = new Path2D(), area = new Path2D();
    for (let i = 0; i < last; i++) {
      if (values[i] === null || t[i + 1] < plot.from || t[i] > plot.to) continue;
      const [x, next] = [plot.x(t[i]), plot.x(t[i + 1])].map(Math.round), y = Math.round(plot.y(values[i])) + 0.5;
      area.rect(x, y, next - x, ground - y);
      if (i && values[i - 1] !== null) line.lineTo(x, y); else line.moveTo(x, y);
      line.lineTo(next, y);
    }
    ctx.save();
    ctx.beginPath();
    ctx.rect(box.left, box.top, box.width, box.height);
    ctx.clip();
    ctx.fillStyle = ctx.strokeStyle = figure.colour("accent");
    ctx.globalAlpha = 0.16;
    ctx.fill(area);
    ctx.globalAlpha = 1;
    ctx.lineWidth = Math.max(1, Math.round(1.25 * plot.ratio));
    ctx.stroke(line);
    ctx.restore();
  }

  // Those of a test; beside all tests those of a node, a run, a gauge or the trial.
  const alertsOf = (data, line) => data.alerts.filter(({ test }) =>
    (line.name ? test === line.name : !data.lines.some(({ name }) => name && name === test)));

  function paintStrip(figure, plot, place) {
    const { data } = figure, line = data.lines[place];
    if (!line) return;
    paintSteps(figure, plot);
    dashed(figure, plot, line.expected, "ink");
    dashed(figure, plot, line.most, "failed");
    if (!place) paintWindows(figure, plot);
    const { ctx } = plot, r = 5 * devicePixelRatio, { left, width, top } = plot.box;
    ctx.fillStyle = figure.colour("failed");
    ctx.strokeStyle = figure.colour("panel");
    ctx.lineWidth = devicePixelRatio;
    for (const { t } of alertsOf(data, line)) {
      const x = plot.x(t), y = top + r;
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

  // Gauges read numbers of any kind, also below 0 and between whole ones.
  const isGauge = (line) => Boolean(line?.name.startsWith("gauge "));
  const value = (line, v) => (isGauge(line) && v % 1 ? `${+v.toPrecision(4)}` : count(v));
  const limit = (line) => `${isGauge(line) ? "limit" : "safe"} ${value(line, line.most)}`;
  const floor = (line) => (isGauge(line) ? Math.min(0, ...line.y.filter((v) => v !== null)) * 1.08 : 0);

  // What a strip must reach up to: a bound, too, unless it is far off.
  function roof(line, max) {
    const bounds = [line?.expected || 0, line?.most && line.most < 3 * max ? line.most : 0];
    return Math.max(max, ...bounds, 1);
  }

  function strip(figure, data, place) {
    const line = data.lines[place], last = place === Math.min(data.lines.length, MOST_STRIPS) - 1;
    const name = make("p", { class: "strip-name" }, make("span", {}, line.name || "all tests"));
    const told = [];
    if (line.expected) told.push(`target ${count(line.expected)}`);
    if (line.most) told.push(limit(line));
    name.append(make("span", { class: "quiet" }, told.join(", ")));
    figure.holder.append(name);
    const plot = figure.add({
      height: STRIP + (last ? AXIS : 0), bare: !last,
      range: (most) => [floor(figure.data.lines[place]), roof(figure.data.lines[place], most) * 1.08],
      label: (v) => (v >= 1e6 ? `${+(v / 1e6).toPrecision(3)} M` : v % 1 && !isGauge(line) ? "" : value(line, v)),
      paint: (plot) => paintStrip(figure, plot, place),
    });
    plot.place = place;
    plot.setData(line.t, line.y);
  }

  const strips = {
    nothing: "Nothing ran yet.",
    empty: (data) => !data.lines.some((line) => line.t.length),
    draw(figure, data) {
      const names = JSON.stringify(data.lines.map(({ name, expected, most }) => [name, expected, most]));
      if (figure.names === names && figure.plots.length) {
        for (const plot of figure.plots) plot.setData(data.lines[plot.place].t, data.lines[plot.place].y);
        return;
      }
      figure.names = names;
      figure.drop();
      data.lines.slice(0, MOST_STRIPS).forEach((line, place) => strip(figure, data, place));
      if (data.lines.length > MOST_STRIPS) figure.holder.append(make("p", { class: "quiet" }, `and ${data.lines.length - MOST_STRIPS} more`));
    },
    point(figure, plot, data) {
      const line = data.lines[plot.place], t = plot.timeAt(plot.pointer[0]), found = valueAt(line, t);
      const near = plot.timeAt(7) - plot.timeAt(0);
      const alerts = alertsOf(data, line).filter((alert) => Math.abs(alert.t - t) < near).slice(0, 3);
      const none = isGauge(line) ? "no reading" : "the trial's clock stood still";
      const what = found === null || found === undefined ? none : value(line, found);
      const of = line.expected ? ` of ${count(line.expected)}` : line.most ? `, ${limit(line)}` : "";
      return [`${line.name || "all tests"}: ${what}${of}`, moment(t), ...alerts.map(({ kind, text }) => `${kind}: ${text}`), ...windowsAt(data, t)];
    },
  };
  kinds["in-flight"] = strips;
  kinds.load = { ...strips, nothing: "No run was placed on a target yet." };
})();
