// Values where somebody points at a picture. They are all written on its points: this only shows them.
const SVG = "http://www.w3.org/2000/svg";

for (const figure of document.querySelectorAll("figure[data-hover]")) {
  const picture = figure.querySelector("svg.picture");
  const dots = [...picture.querySelectorAll("circle[data-place]")];
  const places = [...new Set(dots.map((dot) => dot.getAttribute("cx")))].sort((a, b) => a - b);
  if (!places.length) {
    continue;
  }
  for (const dot of dots) {
    dot.querySelector("title").remove(); // shown below instead, sooner and all at once
  }
  const values = document.createElement("div");
  values.className = "values";
  values.hidden = true;
  figure.append(values);
  const guide = document.createElementNS(SVG, "path");
  guide.setAttribute("class", "guide");
  guide.setAttribute("visibility", "hidden");
  const frame = picture.querySelector("clipPath rect");
  picture.append(guide);
  let current = -1;

  const entry = (dot) => {
    const item = document.createElement("li");
    const sign = document.createElementNS(SVG, "svg");
    sign.setAttribute("viewBox", "0 0 10 10");
    sign.setAttribute("width", "10");
    sign.setAttribute("height", "10");
    const circle = document.createElementNS(SVG, "circle");
    for (const [name, value] of [["cx", 5], ["cy", 5], ["r", 5], ["class", dot.getAttribute("class")]]) {
      circle.setAttribute(name, value);
    }
    sign.append(circle);
    const name = document.createElement("span");
    name.textContent = dot.dataset.name;
    const words = document.createElement("span");
    words.className = "number";
    words.textContent = dot.dataset.words;
    item.append(sign, name, words);
    return item;
  };

  const show = (number) => {
    current = Math.min(Math.max(number, 0), places.length - 1);
    const place = places[current];
    const here = dots.filter((dot) => dot.getAttribute("cx") === place);
    here.sort((a, b) => a.getAttribute("cy") - b.getAttribute("cy")); // as they stand in the picture
    const heading = document.createElement("p");
    heading.textContent = here[0].dataset.place;
    const list = document.createElement("ul");
    list.append(...here.map(entry));
    values.replaceChildren(heading, list);
    values.hidden = false;
    const top = Number(frame.getAttribute("y"));
    guide.setAttribute("d", `M${place} ${top}v${frame.getAttribute("height")}`);
    guide.setAttribute("visibility", "visible");
    const box = picture.getBoundingClientRect();
    const around = figure.getBoundingClientRect();
    const scale = box.width / picture.viewBox.baseVal.width;
    const left = box.left - around.left + place * scale;
    const room = around.width - values.offsetWidth;
    const beside = left > around.width / 2 ? left - values.offsetWidth - 12 : left + 12;
    values.style.left = `${Math.min(Math.max(beside, 0), Math.max(room, 0))}px`;
    const below = around.width < 560; // where it would hide the picture
    values.style.top = `${(below ? box.bottom : box.top + top * scale) - around.top}px`;
  };
  const hide = () => {
    current = -1;
    values.hidden = true;
    guide.setAttribute("visibility", "hidden");
  };
  const nearest = (event) => {
    const box = picture.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * picture.viewBox.baseVal.width;
    const distances = places.map((place) => Math.abs(place - at));
    return distances.indexOf(Math.min(...distances));
  };
  picture.addEventListener("pointermove", (event) => show(nearest(event)));
  picture.addEventListener("pointerdown", (event) => show(nearest(event)));
  picture.addEventListener("pointerleave", hide);
  picture.setAttribute("tabindex", "0");
  picture.addEventListener("focus", () => show(current < 0 ? 0 : current));
  picture.addEventListener("blur", hide);
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      event.preventDefault();
      show(current + step);
    } else if (event.key === "Escape") {
      hide();
    }
  });
}
