// Filters leave no empty fields in the address, so that it stays short when it is sent to somebody. What
// the server refuses is told where the list was: by the page itself, or by the words of an error's page.
"use strict";
document.addEventListener("htmx:configRequest", (event) => {
  const given = event.detail.formData;
  if (!given) return;
  for (const name of new Set(given.keys())) {
    if (given.getAll(name).every((value) => value === "")) given.delete(name);
  }
});

document.addEventListener("htmx:beforeSwap", (event) => {
  const detail = event.detail;
  if (detail.xhr.status < 400 || !detail.target.id) return;
  const answer = new DOMParser().parseFromString(detail.serverResponse, "text/html");
  const whole = answer.getElementById(detail.target.id);
  if (whole && !answer.querySelector("section.error")) return;
  detail.selectOverride = ".error";
  detail.swapOverride = "innerHTML";
  if (answer.querySelector(".error")) return;
  // Not one of our pages: a sign-in, or the word of a proxy.
  detail.selectOverride = "unset";
  detail.serverResponse = `<p class="notice bad" role="alert">The server answers ${detail.xhr.status}; reload this page.</p>`;
});

function lost(event) {
  const note = document.createElement("p");
  note.className = "notice bad";
  note.setAttribute("role", "alert");
  note.textContent = "The server does not answer; what was asked for is not shown. Try again.";
  event.detail.target.replaceChildren(note);
}
for (const name of ["htmx:sendError", "htmx:timeout"]) document.addEventListener(name, lost);
