// Forms of filters ask for the page in place: the part that `data-replaces` names (an id) is taken out of
// the answer, and the address is the one that the form would lead to. `data-sends="change"` sends a form
// when a field changes, "typing" while a person types, too. Without this script they are ordinary forms.
"use strict";
(() => {
  const TYPING_MS = 300;
  let asked = null;  // what aborts the request that is on its way
  let timer = null;

  // Without empty fields, so that the address stays short when it is sent to somebody.
  function addressOf(form, button) {
    const fields = new FormData(form, button);
    for (const name of new Set(fields.keys())) {
      if (fields.getAll(name).every((value) => value === "")) fields.delete(name);
    }
    const address = new URL(form.getAttribute("action"), location.href);
    address.search = new URLSearchParams(fields);
    return address;
  }

  function notice(text) {
    const note = document.createElement("p");
    note.className = "notice bad";
    note.setAttribute("role", "alert");
    note.textContent = text;
    return note;
  }

  // Each of these entries is asked for again when a person comes back to it.
  function remember(address) {
    if (address.href === location.href) return;
    history.replaceState({ ...history.state, filtered: true }, "");
    history.pushState({ filtered: true }, "", address);
  }

  // What the server refuses is told where the list was: by the page itself, or by the words of an error's page.
  function show(part, response, page) {
    const next = page.getElementById(part.id);
    const errors = page.querySelectorAll(".error");
    if (next && (response.ok || !page.querySelector("section.error"))) {
      const focus = part.contains(document.activeElement) ? document.activeElement.id : "";
      part.replaceWith(next);
      if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
      if (page.title) document.title = page.title;
    } else if (errors.length) {
      part.replaceChildren(...errors);
    } else {  // not one of our pages: a sign-in, or the word of a proxy
      part.replaceChildren(notice(`The server answers ${response.status}; reload this page.`));
    }
    document.dispatchEvent(new CustomEvent("replaced"));
  }

  async function send(form, button) {
    clearTimeout(timer);
    asked?.abort();
    const request = (asked = new AbortController());
    const address = addressOf(form, button);
    const part = () => document.getElementById(form.dataset.replaces);  // live.js may have replaced it
    document.documentElement.classList.add("asking");  // live.js waits
    try {
      const response = await fetch(address, { headers: { accept: "text/html" }, signal: request.signal });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      remember(address);
      show(part(), response, page);
    } catch (error) {
      if (request.signal.aborted) return;  // a later question took its place
      part().replaceChildren(notice("The server does not answer; what was asked for is not shown. Try again."));
    } finally {
      if (asked === request) {
        asked = null;
        document.documentElement.classList.remove("asking");
      }
    }
  }

  document.addEventListener("submit", (event) => {
    if (!event.target.dataset.replaces) return;
    event.preventDefault();
    send(event.target, event.submitter);
  });
  document.addEventListener("change", (event) => {
    const { form } = event.target;
    if (form?.dataset.sends) send(form);
  });
  document.addEventListener("input", (event) => {
    const { form, type } = event.target;
    if (form?.dataset.sends !== "typing" || type !== "search") return;
    clearTimeout(timer);
    timer = setTimeout(() => send(form), TYPING_MS);
  });
  addEventListener("popstate", (event) => { if (event.state?.filtered) location.reload(); });
})();
