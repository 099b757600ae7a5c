"use strict";
// Drawings and long tables are packed: each is unpacked when it comes near the window.
async function unpack(place) {
  const script = place.querySelector("script");
  if (!script) return;
  script.remove();
  const bytes = Uint8Array.from(atob(script.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  place.innerHTML = await new Response(stream).text();
}
const packed = document.querySelectorAll(".drawing:has(script), .packed");
const seen = new IntersectionObserver(
  (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => unpack(entry.target)),
  { rootMargin: "600px" },
);
packed.forEach((place) => seen.observe(place));
addEventListener("beforeprint", () => packed.forEach((place) => place.offsetParent && unpack(place)));
// The tabs of a figure: claimed ε, true ε, calibrated noise.
function turn(figure) {
  const tabs = figure.parentElement;
  const all = [...tabs.querySelectorAll("figure")];
  all.forEach((other) => (other.hidden = other !== figure));
  tabs.querySelectorAll("input")[all.indexOf(figure)].checked = true;
}
addEventListener("change", (event) => {
  const tabs = event.target.closest(".numbered");
  if (tabs) turn(tabs.querySelectorAll("figure")[event.target.value - 1]);
});
// A PNG of a drawing, three times as large, on white whatever the page is on.
addEventListener("click", async (event) => {
  const figure = event.target.matches(".png") && event.target.closest("figure");
  const drawn = figure && figure.querySelector("svg");
  if (!drawn) return;
  const image = new Image(), canvas = document.createElement("canvas"), link = document.createElement("a");
  const copy = drawn.cloneNode(true);
  copy.setAttribute("viewBox", drawn.dataset.whole ?? drawn.getAttribute("viewBox"));
  const { width, height } = copy.viewBox.baseVal;
  Object.assign(canvas, { width: 3 * width, height: 3 * height });
  copy.setAttribute("width", canvas.width);
  copy.setAttribute("height", canvas.height);
  image.src = "data:image/svg+xml," + encodeURIComponent(new XMLSerializer().serializeToString(copy));
  await image.decode();
  canvas.getContext("2d").drawImage(image, 0, 0);
  link.href = canvas.toDataURL("image/png");
  link.download = `${figure.id}.png`;
  link.click();
});
// A link to a place opens the folded parts around it.
function reveal() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (place && place.matches(".numbered > figure")) turn(place);
  for (let part = place; part; part = part.parentElement) {
    if (part.tagName === "DETAILS") part.open = true;
  }
  if (place && place.firstElementChild?.tagName === "DETAILS") place.firstElementChild.open = true;
  if (place) place.scrollIntoView();
}
addEventListener("hashchange", reveal);
if (innerWidth < 1000) document.querySelectorAll("nav > details, .glossary").forEach((part) => (part.open = false));
reveal();
