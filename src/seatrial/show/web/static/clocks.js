// Clocks of trials that run go on between two answers of the server: an element with `data-clock` says
// what its clock showed, in seconds, when the page was made; it stops at `data-duration`. They stand still while the page is not
// live, as nobody knows then whether the trial goes on.
"use strict";
(() => {
  const known = new WeakMap();  // from an element to when it was first seen, in seconds

  // As the server writes durations: two units at most.
  function shown(seconds) {
    const whole = Math.floor(seconds);
    if (whole < 60) return `${whole} s`;
    for (const [size, unit, lower, lowerUnit] of [[86400, "d", 3600, "h"], [3600, "h", 60, "m"]]) {
      if (whole >= size) return `${Math.floor(whole / size)} ${unit} ${Math.floor(whole % size / lower)} ${lowerUnit}`;
    }
    return `${Math.floor(whole / 60)} m ${whole % 60} s`;
  }

  function tick() {
    const live = document.getElementById("live")?.dataset.state === "on";
    const now = performance.now() / 1000;
    for (const clock of document.querySelectorAll("[data-clock]")) {
      if (!known.has(clock)) known.set(clock, now);
      const seconds = Number(clock.dataset.clock) + now - known.get(clock);
      const text = shown(Math.min(seconds, Number(clock.dataset.duration) || Infinity));
      if (live && clock.textContent !== text) clock.textContent = text;
    }
  }

  new MutationObserver(tick).observe(document.getElementById("content"), { childList: true, subtree: true });
  setInterval(tick, 1000);
  tick();
})();
