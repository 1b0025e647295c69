// A mindstorm on the page: its dialogue by round, its figures, votes and tally.

import { $, element } from "./dom.js";

const CROWD = 24;
const LONG = 60; // answers with more characters are not set as a headline

export class Storm {
  constructor(graph) {
    this.graph = graph;
    this.clear();
  }

  clear() {
    this.part = "";
    this.turns = this.read = this.written = 0;
    this.asking = new Set();
    this.votes = new Map();
    this.began = performance.now();
    this.stopClock();
    this.graph.reset();
    $("dialogue").replaceChildren();
    $("dialogue").classList.remove("crowd");
    $("verdict").hidden = true;
    $("round").textContent = "–";
    this.figures();
    this.thinks();
    $("seconds").textContent = "0.0";
  }

  /** Counts the seconds while a mindstorm runs. */
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

  /** Shows the status; `is` is `running`, `decided`, `none` (ended without a verdict) or `stopped`. */
  status(text, is) {
    $("status").textContent = text;
    $("status").dataset.is = is;
  }

  /** Shows the question and its choices. */
  asks(question, choices) {
    const letters = choices.length <= 26;
    $("asked").textContent = question;
    $("choices").replaceChildren(
      ...choices.map((choice, at) =>
        element("li", { text: `${letters ? String.fromCharCode(65 + at) : at + 1}. ${choice}` }),
      ),
    );
  }

  take({ event, data }) {
    this[event]?.(data);
  }

  started(data) {
    this.choices = data.choices;
    this.asks(data.question, data.choices);
    this.status(`${count(data.members.length, "member")} ${data.members.length === 1 ? "is" : "are"} thinking.`, "running");
    $("dialogue").classList.toggle("crowd", data.members.length > CROWD);
  }

  asked(data) {
    this.under(data.phase, data.round);
    this.graph.asks(data.member);
    this.asking.add(data.member);
    this.thinks();
    const others = this.asking.size - 1;
    const whom = data.waits ? "it is your turn" : others ? `asking ${this.asking.size} members` : `asking ${data.member}`;
    this.status(`${data.phase}, round ${data.round}: ${whom}.`, "running");
  }

  spoke(data) {
    this.under(data.phase, data.round);
    this.turns += 1;
    this.read += data.usage.prompt_tokens;
    this.written += data.usage.completion_tokens;
    this.figures();
    const notes = [];
    if (data.answer !== null && !data.ballot && data.answer !== data.text.trim()) notes.push(`answer: ${data.answer}`);
    if (data.confidence !== null) notes.push(`${Math.round(data.confidence * 100)}% sure`);
    if (data.why) notes.push(data.why === data.text ? "no answer" : `no answer: ${data.why}`);
    const line = this.line(data.sender, data.text);
    if (data.ballot) line.append(" ", element("small", { className: "vote", text: `votes ${ballot(data.ballot)}` }));
    if (notes.length) line.append(" ", element("small", { text: notes.join(" · ") }));
    this.append(line);
    this.graph.speaks(data.sender, data.ballot !== null || (data.label === "ballot" && data.answer !== null));
    this.answered(data.sender);
    if (data.ballot?.kind === "choice") this.voted(data.sender, data.ballot.choice);
  }

  abstained(data) {
    this.under(data.phase, data.round);
    const line = this.line(data.member, data.cause, "abstains");
    line.classList.add("abstains");
    this.append(line);
    this.graph.abstains(data.member);
    this.answered(data.member);
  }

  round_closed(data) {
    this.asking.clear();
    this.thinks();
    this.status(`${data.phase}, round ${data.round}: ${data.replied} of ${data.asked} replied.`, "running");
  }

  decided(data) {
    this.over();
    const none = data.answer === null;
    const tied = data.tied.length ? `tied between ${data.tied.join(", ")}` : "";
    const answer = none ? `No verdict${tied && `: ${tied}`}` : data.answer;
    this.verdict("Verdict", none ? "none" : "");
    $("answer").textContent = answer;
    $("answer").classList.toggle("long", answer.length > LONG);
    tally($("tally"), data.tally, data.answer);
    const how = [`by ${data.rule}`];
    if (data.confidence !== null) how.push(`${Math.round(data.confidence * 100)}% sure`);
    if (data.abstained.length) how.push(count(data.abstained.length, "abstention"));
    if (data.cut_short) how.push(`cut short: ${data.cut_short}`);
    const usage = data.usage_total;
    how.push(count(usage.calls, "model call"));
    $("how").textContent = how.join(" · ");
    $("read").textContent = usage.prompt_tokens.toLocaleString();
    $("written").textContent = usage.completion_tokens.toLocaleString();
    $("seconds").textContent = usage.seconds.toFixed(1);
    if (none) this.status(`Finished without a verdict${tied && `: ${tied}`}.`, "none");
    else this.status(`Finished. The verdict: ${data.answer}.`, "decided");
  }

  stopped(data) {
    this.over();
    this.status(`Stopped: ${data.reason}.`, "stopped");
  }

  over() {
    this.stopClock();
    this.asking.clear();
    this.thinks();
    this.graph.rests();
  }

  /** Shows the latest vote of each member until there is a verdict. */
  voted(member, choice) {
    this.votes.set(member, choice);
    const counts = Object.fromEntries(this.choices.map((one) => [one, 0]));
    for (const one of this.votes.values()) counts[one] = (counts[one] ?? 0) + 1;
    this.verdict("Votes so far", "open");
    $("answer").textContent = "";
    tally($("tally"), counts);
    $("how").textContent = "";
  }

  verdict(title, look) {
    $("verdict").hidden = false;
    $("verdict").className = look;
    $("verdict-title").textContent = title;
  }

  answered(member) {
    this.asking.delete(member);
    this.thinks();
  }

  thinks() {
    const [first, second, ...rest] = this.asking;
    $("thinking").hidden = !first;
    const who = rest.length ? `${first}, ${second} and ${count(rest.length, "other")}` : second ? `${first} and ${second}` : first;
    $("thinking").textContent = `Waiting for ${who}`;
  }

  under(phase, round) {
    const part = `${phase}, round ${round}`;
    if (part === this.part) return;
    this.part = part;
    $("round").textContent = part;
    $("dialogue").append(element("h3", { text: part }));
  }

  line(member, words, does = "") {
    const face = element("span", { className: "face", text: initials(member), "aria-hidden": "true" });
    const line = element("div", { className: "said" }, face, element("b", { text: member }));
    if (does) line.append(" ", element("small", { text: does }));
    line.append(element("span", { className: "hush", text: ": " }), element("span", { className: "words", text: words }));
    line.style.setProperty("--who", this.graph.colour(member));
    return line;
  }

  append(line) {
    const log = $("dialogue");
    const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 40;
    log.append(line);
    if (atEnd) log.scrollTop = log.scrollHeight;
  }
}

const count = (number, what) => `${number.toLocaleString()} ${what}${number === 1 ? "" : "s"}`;

/** Initials of a member: ET for `eyes.tag`, E2 for `eyes.2`, A for `anna`. */
function initials(name) {
  const [first, ...more] = name.split(".");
  return ([...first][0] + (more.length ? [...more.at(-1)][0] : "")).toUpperCase();
}

function ballot(given) {
  if (given.kind === "choice") return given.choice;
  if (given.kind === "approval") return given.approved.join(", ");
  if (given.kind === "ranking") return given.ranking.join(" > ");
  return Object.entries(given.scores).map(([name, score]) => `${name} ${score}`).join(", ");
}

function tally(place, counts, winner) {
  const entries = Object.entries(counts);
  const most = Math.max(...entries.map(([, count]) => Math.abs(count)), 1e-9);
  place.replaceChildren(
    ...entries.map(([name, count]) => {
      const bar = element("i", { "aria-hidden": "true" });
      bar.style.width = `${(100 * Math.max(0, count)) / most}%`;
      const figure = element("span", { className: "figure", text: Number(count.toFixed(3)).toString() });
      const row = element("div", { className: "bar", role: "listitem" }, element("span", { text: name }), bar, figure);
      row.classList.toggle("won", name === winner);
      return row;
    }),
  );
}
