// A mindstorm on the page: its dialogue by rounds, figures, ballots and tally.

import { $, element } from "./dom.js";

const CROWD = 24;

export class Storm {
  constructor(graph) {
    this.graph = graph;
    this.clear();
  }

  clear() {
    this.part = "";
    this.turns = this.read = this.written = 0;
    this.began = performance.now();
    this.stopClock();
    this.graph.reset();
    $("dialogue").replaceChildren();
    $("dialogue").classList.remove("crowd");
    $("verdict").hidden = true;
    $("round").textContent = "–";
    this.figures();
    $("seconds").textContent = "0.0";
  }

  /** The seconds run while a mindstorm does. */
  startClock() {
    this.stopClock();
    this.clock = setInterval(() => {
      $("seconds").textContent = ((performance.now() - this.began) / 1000).toFixed(1);
    }, 100);
  }

  stopClock() {
    clearInterval(this.clock);
  }

  figures() {
    $("turns").textContent = this.turns;
    $("read").textContent = this.read.toLocaleString();
    $("written").textContent = this.written.toLocaleString();
  }

  take({ event, data }) {
    this[event]?.(data);
  }

  started(data) {
    const letters = data.choices.length <= 26;
    const choices = data.choices.map((choice, at) => `${letters ? String.fromCharCode(65 + at) : at + 1}. ${choice}`);
    $("asked").textContent = [data.question, ...choices].join("\n");
    $("status").textContent = `${data.members.length} members think.`;
    $("dialogue").classList.toggle("crowd", data.members.length > CROWD);
  }

  asked(data) {
    this.under(data.phase, data.round);
    this.graph.asks(data.member);
    if (!data.waits) $("status").textContent = `${data.phase}, round ${data.round}: ${data.member} is asked.`;
  }

  spoke(data) {
    this.under(data.phase, data.round);
    this.turns += 1;
    this.read += data.usage.prompt_tokens;
    this.written += data.usage.completion_tokens;
    this.figures();
    const line = element("p", { className: "said" }, element("b", { text: data.sender }), `: ${data.text}`);
    const notes = [];
    if (data.ballot) notes.push(`votes ${ballot(data.ballot)}`);
    else if (data.answer !== null && data.answer !== data.text.trim()) notes.push(`answer: ${data.answer}`);
    if (data.confidence !== null) notes.push(`${Math.round(data.confidence * 100)}% sure`);
    if (data.why) notes.push(`no answer: ${data.why}`);
    if (notes.length) line.append(element("small", { text: ` (${notes.join(", ")})` }));
    this.append(line);
    this.graph.speaks(data.sender, data.ballot !== null || data.label === "ballot");
  }

  abstained(data) {
    this.under(data.phase, data.round);
    const line = element("p", { className: "said abstains" }, element("b", { text: data.member }), ` abstains: ${data.cause}`);
    this.append(line);
    this.graph.abstains(data.member);
  }

  round_closed(data) {
    $("status").textContent = `${data.phase}, round ${data.round}: ${data.replied} of ${data.asked} spoke.`;
  }

  decided(data) {
    this.stopClock();
    $("verdict").hidden = false;
    const none = data.answer === null;
    const tied = data.tied.length ? `No verdict: tied between ${data.tied.join(", ")}` : "No verdict";
    $("answer").textContent = none ? tied : data.answer;
    $("answer").classList.toggle("none", none);
    tally($("tally"), data.tally);
    const how = [`by ${data.rule}`];
    if (data.confidence !== null) how.push(`${Math.round(data.confidence * 100)}%`);
    if (data.abstained.length) how.push(`${data.abstained.length} abstentions`);
    if (data.cut_short) how.push(`cut short: ${data.cut_short}`);
    const usage = data.usage_total;
    how.push(`${usage.calls} calls`, `${usage.prompt_tokens} tokens read`, `${usage.completion_tokens} written`);
    $("how").textContent = how.join(" · ");
    $("seconds").textContent = usage.seconds.toFixed(1);
    $("status").textContent = none ? `It is over: ${tied}.` : `It is over. The verdict: ${data.answer}.`;
  }

  stopped(data) {
    this.stopClock();
    $("status").textContent = `It stopped: ${data.reason}.`;
  }

  under(phase, round) {
    const part = `${phase}, round ${round}`;
    if (part === this.part) return;
    this.part = part;
    $("round").textContent = part;
    $("dialogue").append(element("h3", { text: part }));
  }

  append(line) {
    const log = $("dialogue");
    const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 40;
    log.append(line);
    if (atEnd) log.scrollTop = log.scrollHeight;
  }
}

function ballot(given) {
  if (given.kind === "choice") return given.choice;
  if (given.kind === "approval") return given.approved.join(", ");
  if (given.kind === "ranking") return given.ranking.join(" > ");
  return Object.entries(given.scores).map(([name, score]) => `${name} ${score}`).join(", ");
}

function tally(place, counts) {
  const entries = Object.entries(counts);
  const most = Math.max(...entries.map(([, count]) => Math.abs(count)), 1e-9);
  place.replaceChildren(
    ...entries.map(([name, count]) => {
      const bar = element("i", { "aria-hidden": "true" });
      bar.style.width = `${(100 * Math.max(0, count)) / most}%`;
      const figure = element("span", { className: "figure", text: Number(count.toFixed(3)).toString() });
      return element("div", { className: "bar", role: "listitem" }, element("span", { text: name }), bar, figure);
    }),
  );
}
