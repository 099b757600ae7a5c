"use strict";
// Drawings in folded parts are packed: they are unpacked when their part opens.
async function unpack(drawing) {
  const script = drawing.querySelector("script");
  if (!script) return;
  script.remove();
  const bytes = Uint8Array.from(atob(script.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  drawing.innerHTML = await new Response(stream).text();
}
function fill(event) {
  if (!event.target.open) return;
  for (const drawing of event.target.querySelectorAll(".drawing")) {
    if (drawing.closest("details") === event.target) unpack(drawing);
  }
}
addEventListener("toggle", fill, true);
// A link to a place opens the folded parts around it.
function reveal() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let part = place; part; part = part.parentElement) {
    if (part.tagName === "DETAILS") part.open = true;
  }
  if (place) place.scrollIntoView();
}
addEventListener("hashchange", reveal);
if (innerWidth < 1000) document.querySelector("nav details").open = false;
reveal();
