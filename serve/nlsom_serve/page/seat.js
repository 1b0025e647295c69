// The seat of a person in the society: what is asked, until when, and the answer.

import { post } from "./api.js";
import { $, element, problem } from "./dom.js";

export class Seat {
  constructor() {
    this.open = [];
    $("turn").addEventListener("submit", (event) => {
      event.preventDefault();
      this.answer();
    });
  }

  clear() {
    this.open = [];
    this.show();
  }

  /** A turn waits for a person. */
  asks(mindstorm, turn) {
    if (this.open.some((one) => one.turn.key === turn.key)) return;
    this.open.push({ mindstorm, turn });
    this.show();
  }

  /** A member spoke or abstained: its turn is over. */
  over(member) {
    this.keep((turn) => turn.member !== member);
  }

  keep(wanted) {
    const left = this.open.filter((one) => wanted(one.turn));
    if (left.length !== this.open.length) {
      this.open = left;
      this.show();
    }
  }

  show() {
    clearInterval(this.clock);
    const [first] = this.open;
    $("seat").hidden = !first;
    if (!first) return;
    const { turn } = first;
    $("seat-title").textContent = `Your turn, ${turn.member}`;
    $("turn-ask").textContent = turn.ask;
    problem("turn-problem", "");
    $("turn-text").value = "";
    const options = turn.form === "choice" ? turn.options : turn.form === "yes_no" ? ["yes", "no"] : [];
    $("turn-options").replaceChildren(
      ...options.map((option, at) => {
        const radio = element("input", { type: "radio", name: "option", id: `option-${at}`, value: option });
        return element("label", { for: `option-${at}` }, radio, ` ${option}`);
      }),
    );
    $("turn-text").hidden = $("turn-label").hidden = options.length > 0;
    $("turn-label").textContent = turn.instruction && !options.length ? `Your answer. ${turn.instruction}` : "Your answer";
    (options.length ? $("option-0") : $("turn-text")).focus();
    const tick = () => {
      const left = turn.deadline === null ? null : Math.max(0, Math.ceil(turn.deadline - Date.now() / 1000));
      $("turn-time").textContent = left === null ? "" : `${left} seconds left`;
    };
    tick();
    this.clock = setInterval(tick, 500);
  }

  async answer() {
    const [first] = this.open;
    if (!first) return;
    const chosen = document.querySelector("#turn-options input:checked");
    const answer = chosen ? chosen.value : $("turn-text").value.trim();
    if (!answer) return problem("turn-problem", "Choose or write an answer first.");
    const gone = () => this.keep((turn) => turn.key !== first.turn.key);
    try {
      await post(`/v1/mindstorms/${first.mindstorm}/turns/${first.turn.key}`, { answer });
      gone(); // by key, since the next turn of the same member may already be open
    } catch (error) {
      problem("turn-problem", error.message);
      if (error.status === 409 || error.status === 404) setTimeout(gone, 2500);
    }
  }
}
