// The society's drawing, made by the server; highlights who is asked, who speaks, and who hears it.

import { element } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

export class Graph {
  constructor(place) {
    this.place = place;
    this.discs = new Map();
  }

  /** Shows a drawing; `seats`, in the order of its discs, say who hears whom. */
  show(svg, seats) {
    const parsed = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    this.svg = document.importNode(parsed, true);
    this.place.replaceChildren(this.svg);
    this.place.classList.toggle("wide", this.svg.viewBox.baseVal.width > 420);
    const discs = [...this.svg.querySelectorAll("circle:has(title)")]; // the legend and hubs have no title
    this.discs = new Map(seats.map((seat, at) => [seat.name, discs[at]]).filter(([, disc]) => disc));
    this.listeners = new Map(seats.map((seat) => [seat.name, []]));
    for (const seat of seats) {
      for (const heard of seat.hears ?? seats.map((other) => other.name)) {
        if (heard !== seat.name) this.listeners.get(heard)?.push(seat.name);
      }
    }
    this.lines = document.createElementNS(SVG, "g");
    const crowd = seats.length > 48;
    this.place.classList.toggle("crowd", crowd);
    if (crowd) this.place.append(element("p", { className: "soft", text: inWords(this.svg) })); // the drawing's own text is too small
    this.svg.insertBefore(this.lines, this.svg.querySelector("circle"));
  }

  reset() {
    for (const disc of this.discs.values()) disc.classList.remove("thinking", "speaking", "absent", "voted");
    this.lines?.replaceChildren();
  }

  /** The colour of a member's role. */
  colour(name) {
    return this.discs.get(name)?.getAttribute("fill") ?? "";
  }

  /** No member is thinking any more. */
  rests() {
    for (const disc of this.discs.values()) disc.classList.remove("thinking");
  }

  asks(name) {
    this.discs.get(name)?.classList.add("thinking");
  }

  speaks(name, voted) {
    const disc = this.discs.get(name);
    if (!disc) return;
    disc.classList.remove("thinking");
    disc.classList.add("speaking");
    if (voted) disc.classList.add("voted");
    const path = document.createElementNS(SVG, "path");
    const [x, y] = [disc.getAttribute("cx"), disc.getAttribute("cy")];
    const ends = this.listeners.get(name).map((other) => this.discs.get(other)).filter(Boolean);
    path.setAttribute("d", ends.map((end) => `M${x} ${y}L${end.getAttribute("cx")} ${end.getAttribute("cy")}`).join(""));
    const crowd = ends.length > 24;
    path.setAttribute("class", crowd ? "says crowd" : "says");
    if (this.lines.childElementCount < (crowd ? 3 : 40)) this.lines.append(path); // more would be illegible
    setTimeout(() => {
      disc.classList.remove("speaking");
      path.remove();
    }, 1400);
  }

  abstains(name) {
    const disc = this.discs.get(name);
    disc?.classList.remove("thinking");
    disc?.classList.add("absent");
  }
}

function inWords(svg) {
  const words = svg.querySelector("desc").textContent.replace(/: \d+ member\./, "."); // the default role is not worth naming
  return words.replace(/\. [a-z]/g, (start) => start.toUpperCase());
}
