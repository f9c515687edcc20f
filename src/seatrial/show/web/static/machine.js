// A machine's map of nodes: what is under the pointer is told below it, a click or Enter opens a
// node's page, arrow keys move as the nodes stand. Which node a square is, the page's own JSON says.
"use strict";
(() => {
  const CELL = 10;
  const known = new Map();  // from an address of JSON to what it said
  let at = null;  // {block, index} of the node that is told of

  const map = () => document.getElementById("map");

  async function ask(figure) {
    const source = figure.dataset.src;
    if (!known.has(source)) {
      known.clear();
      known.set(source, fetch(source).then((answer) => (answer.ok ? answer.json() : null)).catch(() => null));
    }
    return known.get(source);
  }

  function cellAt(svg, block, x, y) {
    const box = svg.getBoundingClientRect();
    const view = svg.viewBox.baseVal;
    const column = Math.floor(((x - box.left) / box.width * view.width + view.x) / CELL);
    const row = Math.floor(((y - box.top) / box.height * view.height + view.y) / CELL);
    const index = row * block.columns + column;
    const inside = column >= 0 && column < block.columns && index >= 0 && index < block.places.length;
    return inside ? index : -1;
  }

  function show(figure, data) {
    figure.querySelectorAll(".here").forEach((old) => old.remove());
    const said = document.getElementById("map-said");
    if (!at) { said.textContent = "\u00a0"; return; }
    const block = data.blocks[at.block];
    const place = block.places[at.index];
    said.textContent = `${data.names[place]}: ${data.told[place]}`;
    const svg = figure.querySelector(`svg[data-block="${at.block}"]`);
    const here = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const where = { x: (at.index % block.columns) * CELL - 0.5, width: CELL,
      y: Math.floor(at.index / block.columns) * CELL - 0.5, height: CELL, class: "here" };
    for (const [name, value] of Object.entries(where)) here.setAttribute(name, value);
    svg.append(here);
  }

  function open(figure, data) {
    if (!at) return;
    const name = data.names[data.blocks[at.block].places[at.index]];
    const query = figure.dataset.query;
    location.assign(figure.dataset.node + encodeURIComponent(name) + (query ? "?" + query : ""));
  }

  async function point(event) {
    const figure = map();
    const svg = event.target.closest?.("#map svg[data-block]");
    if (!figure || !svg) return;
    const data = await ask(figure);
    if (!data) return;
    const number = Number(svg.dataset.block);
    const index = cellAt(svg, data.blocks[number], event.clientX, event.clientY);
    if (index < 0) return;
    at = { block: number, index };
    show(figure, data);
    if (event.type === "click") open(figure, data);
  }

  function move(data, key) {
    const last = data.blocks.length - 1;
    const end = { block: last, index: data.blocks[last].places.length - 1 };
    const known = at && at.block <= last && at.index < data.blocks[at.block].places.length;
    if (key === "End") at = end;
    else if (key === "Home" || !known) at = { block: 0, index: 0 };
    else {
      const block = data.blocks[at.block];
      const to = at.index + { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -block.columns, ArrowDown: block.columns }[key];
      if (to >= 0 && to < block.places.length) at = { block: at.block, index: to };
      else if (to > 0 && at.block < last) at = { block: at.block + 1, index: 0 };
      else if (to < 0 && at.block > 0) at = { block: at.block - 1, index: data.blocks[at.block - 1].places.length - 1 };
    }
  }

  document.addEventListener("pointermove", point);
  document.addEventListener("click", point);
  document.addEventListener("keydown", async (event) => {
    const figure = map();
    const ours = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "Enter"];
    if (!figure || document.activeElement !== figure || !ours.includes(event.key)) return;
    event.preventDefault();
    const data = await ask(figure);
    if (!data || !data.blocks.length) return;
    if (event.key === "Enter") open(figure, data);
    else {
      move(data, event.key);
      show(figure, data);
      figure.querySelector(".here")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  });
  document.addEventListener("news", async () => {
    known.clear();
    const figure = map();
    if (!at || !figure) return;
    const data = await ask(figure);
    if (data?.blocks[at.block]?.places[at.index] !== undefined) show(figure, data);
  });
})();
