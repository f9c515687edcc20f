// Keeps an open page true: when the server has news, or half a minute has passed (clocks go on without
// events), the page is asked for again, and those of its parts that are marked `data-live` (each with
// an id) are replaced if they changed. What a person is doing elsewhere on the page (typing, scrolling,
// an open menu) is left alone. Plots listen to the event `news` on the document themselves.
"use strict";
(() => {
  const LEAST_MS = 500, OLD_MS = 30000;
  const sign = document.getElementById("live");
  const sent = new Map();  // the parts as they came, by their ids
  let seen = null, last = Date.now(), timer = null, asking = false;

  function show(state, text) {
    if (!sign || sign.dataset.state === state) return;
    sign.dataset.state = state;
    sign.textContent = text;
  }

  function busyIn(part) {
    const active = document.activeElement;
    const selection = document.getSelection();
    const marked = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
    return marked || (active && part.contains(active) && active.matches("input, select, textarea"));
  }

  // Whatever can be opened stays as it was; the element with the focus keeps it.
  function replace(old, fresh) {
    const open = new Set([...old.querySelectorAll("details[open][id]")].map((d) => d.id));
    const focus = old.contains(document.activeElement) ? document.activeElement : null;
    const name = focus && (focus.id ? "#" + CSS.escape(focus.id)
      : focus.getAttribute("href") && `a[href="${CSS.escape(focus.getAttribute("href"))}"]`);
    const scroll = [...old.querySelectorAll(".wide")].map((box) => box.scrollLeft);
    old.replaceWith(fresh);
    for (const details of fresh.querySelectorAll("details[id]")) {
      if (open.has(details.id)) details.open = true;
    }
    [...fresh.querySelectorAll(".wide")].forEach((box, i) => { box.scrollLeft = scroll[i] || 0; });
    if (name) fresh.querySelector(name)?.focus({ preventScroll: true });
  }

  async function ask() {
    if (asking) return later();
    asking = true;
    last = Date.now();
    const address = location.href;
    try {
      const response = await fetch(address, { headers: { accept: "text/html" } });
      // A page whose question cannot be read says so itself (400).
      if (!response.ok && response.status !== 400) throw new Error(String(response.status));
      if (document.querySelector("[data-passing]")) return location.reload();  // what failed is well
      const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
      // A filter has been set meanwhile; its answer may be to come, for a part that is here now.
      if (location.href !== address || document.documentElement.matches(".asking")) return later();
      for (const old of document.querySelectorAll("[data-live]")) {
        const next = fresh.getElementById(old.id);
        const html = next?.outerHTML;
        if (next && html !== (sent.get(old.id) ?? old.outerHTML) && !busyIn(old)) {
          replace(old, next);
          sent.set(old.id, html);
        }
      }
      document.dispatchEvent(new CustomEvent("news"));
      show("on", "live");
    } catch (error) {
      show("off", "no connection");
    } finally {
      asking = false;
    }
  }

  function later() {
    if (timer || document.hidden) return;
    timer = setTimeout(() => { timer = null; ask(); }, Math.max(0, last + LEAST_MS - Date.now()));
  }

  const source = new EventSource("/news");
  source.addEventListener("news", (event) => {
    show("on", "live");
    // What a page waits for may have come between its making and this stream.
    const waits = seen === null && document.querySelector("[data-pending]");
    if (waits || (seen !== null && seen !== event.data) || Date.now() - last > OLD_MS) later();
    seen = event.data;
  });
  source.onerror = () => {
    show("off", "no connection");
    if (seen !== null) seen = "";  // a server that began anew counts anew
  };
  document.addEventListener("visibilitychange", () => { if (!document.hidden) later(); });

  // A narrow bar shows where one is.
  document.querySelector(".top nav a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
})();
