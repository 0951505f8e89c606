// Updates the page every five seconds while it is visible. The page works without it.
"use strict";
(() => {
  const EVERY_MS = 5000;
  const bar = document.getElementById("updates");
  const said = document.getElementById("updated");
  const pause = document.getElementById("pause");
  let etag = null;
  let paused = false;
  let busy = false;

  const say = (text) => { if (said.textContent !== text) said.textContent = text; };

  // Places that can have the focus. Links and buttons without an id are known by their text.
  const places = () => [...document.querySelectorAll("#main :is(a, button, input, select, summary, [tabindex])")];
  const sign = (place) => place.id || place.tagName + place.getAttribute("href") + place.textContent;

  // Keep what the reader has opened, scrolled or focused. Returns a new state, to be announced.
  const swap = (text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("main");
    const main = document.getElementById("main");
    if (!fresh || !main) return null;
    const stateOf = (page) => [...page.querySelectorAll(".title > *")].map((part) => part.textContent).join(", ");
    const [state, newer] = [main, fresh].map(stateOf);
    // an alarm that is there already is not announced again
    const kind = (alarm) => (alarm.querySelector("h2") ?? alarm).textContent;
    const known = [...main.querySelectorAll(".alarm")].map(kind);
    for (const alarm of fresh.querySelectorAll(".alarm")) {
      if (known.includes(kind(alarm))) alarm.removeAttribute("role");
    }
    const focus = places().includes(document.activeElement) ? sign(document.activeElement) : null;
    const isAlike = (place) => sign(place) === focus;
    const alike = places().filter(isAlike).indexOf(document.activeElement);
    const open = new Set([...main.querySelectorAll("details[open]")].map((details) => details.id));
    const scrolled = [...main.querySelectorAll(".scroll")].map((region) => [region.scrollLeft, region.scrollTop]);
    const fields = [...main.querySelectorAll("input[id], select[id]")].map((field) => [field.id, field.value]);
    main.replaceChildren(...fresh.childNodes);
    for (const details of main.querySelectorAll("details")) details.open = open.has(details.id);
    main.querySelectorAll(".scroll").forEach((region, index) => {
      if (scrolled[index]) [region.scrollLeft, region.scrollTop] = scrolled[index];
    });
    for (const [id, value] of fields) {
      const field = document.getElementById(id);
      if (field) field.value = value;
    }
    if (focus) places().filter(isAlike)[alike]?.focus({ preventScroll: true });
    return newer === state ? null : newer;
  };

  const update = async () => {
    const isTyping = document.activeElement && document.activeElement.matches("main input");
    const isSelecting = !document.getSelection().isCollapsed;
    if (paused || busy || document.hidden || isTyping || isSelecting) return;
    busy = true;
    try {
      const headers = etag ? { "if-none-match": etag } : {};
      const answer = await fetch(location.href, { headers, cache: "no-store", redirect: "error" });
      if (answer.status === 200) {
        etag = answer.headers.get("etag");
        say(swap(await answer.text()) ?? "Up to date");
      } else if (answer.status === 304) {
        say("Up to date");
      } else {
        say("The server responded " + answer.status + "; this page is out of date");
      }
    } catch {
      say("The server does not respond; this page is out of date");
    } finally {
      busy = false;
    }
  };

  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Resume updates" : "Pause updates";
    say(paused ? "Paused" : "Up to date");
    update();
  });
  document.addEventListener("visibilitychange", update);
  setInterval(update, EVERY_MS);
  bar.hidden = false;
  say("Updates every 5 s");
})();
