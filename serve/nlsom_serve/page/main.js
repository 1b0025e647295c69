// The page: ask a society, watch its mindstorm, open past ones, take a seat.

import * as api from "./api.js";
import { $, element, problem } from "./dom.js";
import { Graph } from "./graph.js";
import { Pictures } from "./pictures.js";
import { Seat } from "./seat.js";
import { Storm } from "./storm.js";

const graph = new Graph($("graph"));
const storm = new Storm(graph);
const seat = new Seat();
const pictures = new Pictures();
let watching = new AbortController();
let shown = null;
let rush = false;
let oldest = null;

/** Runs an action of the user; asks for a key if one is needed, and shows what went wrong. */
async function trying(work) {
  problem("problem", "");
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (error.name === "AbortError") return undefined;
      if (error.status !== 401) {
        problem("problem", error.message);
        return undefined;
      }
      await askForKey();
    }
  }
}

function askForKey() {
  return new Promise((done) => {
    const dialog = $("key-dialog");
    dialog.addEventListener(
      "close",
      () => {
        api.setKey($("key").value);
        $("key").value = "";
        done();
      },
      { once: true },
    );
    dialog.showModal();
  });
}

async function showSociety(id) {
  if (shown === id) return;
  const [told, svg] = await Promise.all([
    api.get(`/v1/societies/${encodeURIComponent(id)}`),
    api.getText(`/v1/societies/${encodeURIComponent(id)}/graph.svg`),
  ]);
  $("about").textContent = told.about;
  $("society").value = id;
  graph.show(svg, told.seats);
  shown = id;
}

function take(id, one) {
  storm.take(one);
  if (one.event === "asked" && one.data.waits) seat.asks(id, one.data.waits);
  if (one.event === "spoke") seat.over(one.data.sender);
  if (one.event === "abstained") seat.over(one.data.member);
}

function begin(id) {
  watching.abort();
  watching = new AbortController();
  storm.clear();
  seat.clear();
  $("replay").hidden = true;
  $("cancel").hidden = true;
  storm.status("Starting.", "running");
  if (location.hash !== `#${id}`) history.pushState(null, "", `#${id}`);
  mark();
  return watching.signal;
}

async function follow(id) {
  const signal = begin(id);
  storm.startClock();
  $("cancel").hidden = false;
  const broke = () => storm.status("Connection lost; reconnecting.", "running");
  try {
    await api.watch(id, (one) => take(id, one), { signal, broke });
  } finally {
    if (!signal.aborted) {
      storm.stopClock();
      seat.clear();
      $("cancel").hidden = true;
      playing(false);
      await listPast();
    }
  }
}

async function showPictures(id, count) {
  const blobs = await Promise.all(
    Array.from({ length: count }, (_, at) => api.getBlob(`/v1/mindstorms/${id}/images/${at}`)),
  );
  const urls = blobs.map((blob) => URL.createObjectURL(blob));
  for (const image of $("shown").querySelectorAll("img")) URL.revokeObjectURL(image.src);
  $("shown").replaceChildren(
    ...urls.map((src, at) => element("li", {}, element("img", { src, alt: `Picture ${at + 1} of the question` }))),
  );
  return blobs;
}

/** Shows a mindstorm: live, or at once if it has ended. */
async function open(id) {
  const told = await api.get(`/v1/mindstorms/${id}`);
  await showSociety(told.society).catch(() => undefined); // its society may no longer be served
  storm.asks(told.question, told.choices);
  const blobs = await showPictures(id, told.images);
  $("reuse").hidden = !blobs.length;
  $("reuse").onclick = () => trying(() => askAgain(blobs));
  await follow(id);
}

/** Puts the pictures of a past question into the form, for another question. */
async function askAgain(blobs) {
  await pictures.reuse(blobs);
  $("question").select();
}

/** Replays a past mindstorm, turn by turn. */
async function replay(id) {
  const signal = begin(id);
  const events = [];
  await api.watch(id, (one) => events.push(one), { signal });
  const turns = events.filter((one) => one.event === "spoke" || one.event === "abstained").length;
  rush = false;
  playing(true);
  for (const one of events) {
    if (one.event === "spoke") graph.asks(one.data.sender);
    if (one.event === "spoke" || one.event === "abstained") await pause(Math.min(700, LONGEST / turns));
    if (signal.aborted) return;
    storm.take(one);
  }
  playing(false);
}

function playing(on) {
  $("replay").hidden = false;
  $("again").hidden = on;
  $("skip").hidden = !on;
}

const LONGEST = 30_000; // milliseconds of a replay at normal speed
const pause = (milliseconds) =>
  rush ? undefined : new Promise((done) => setTimeout(done, milliseconds * Number($("speed").value)));

async function listPast(more = false) {
  const told = await api.get(`/v1/mindstorms?limit=20${more && oldest ? `&before=${oldest}` : ""}`);
  const items = told.data.map((one) => {
    const answer = element("b", { text: one.answer ?? (one.state === "decided" ? "no verdict" : one.state) });
    answer.classList.toggle("none", one.answer === null);
    const when = one.started ? `· ${new Date(one.started * 1000).toLocaleString([], WHEN)}` : "";
    const button = element("button", { type: "button" }, element("span", { className: "asked", text: one.question || "(a picture)" }));
    button.append(element("small", {}, answer, ` · ${one.society} `, element("span", { className: "when", text: when })));
    button.dataset.id = one.id;
    button.addEventListener("click", () => trying(() => open(one.id)));
    return element("li", {}, button);
  });
  if (more) $("past").append(...items);
  else $("past").replaceChildren(...items);
  oldest = told.data.at(-1)?.id ?? null;
  $("more").hidden = !told.more;
  $("past-none").hidden = $("past").childElementCount > 0;
  mark();
}

const WHEN = { dateStyle: "short", timeStyle: "short" };

/** Marks which of the past mindstorms is shown. */
function mark() {
  for (const button of $("past").querySelectorAll("button")) {
    if (button.dataset.id === location.hash.slice(1)) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
}

async function ask() {
  const society = $("society").value;
  const sent = pictures.urls;
  $("send").disabled = true;
  try {
    const begun = await api.post("/v1/mindstorms", {
      society,
      question: $("question").value,
      find_choices: true,
      images: sent,
    });
    pictures.keep(sent);
    await showPictures(begun.id, begun.images);
    $("reuse").hidden = true; // they are still in the form
    storm.asks(begun.question, begun.choices);
    if (matchMedia("(max-width: 56rem)").matches) $("watching").scrollIntoView();
    trying(() => follow(begun.id)); // not awaited: another question may be asked meanwhile
  } finally {
    $("send").disabled = false;
  }
}

async function start() {
  const societies = (await api.get("/v1/societies")).data;
  $("society").replaceChildren(...societies.map((one) => element("option", { value: one.id, text: one.name })));
  await showSociety(societies[0].id);
  await listPast();
  if (location.hash.length > 1) await open(location.hash.slice(1));
}

$("society").addEventListener("change", () => trying(() => showSociety($("society").value)));
$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  trying(ask);
});
$("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("ask").requestSubmit();
});
$("cancel").addEventListener("click", () => trying(() => api.remove(`/v1/mindstorms/${location.hash.slice(1)}`)));
$("again").addEventListener("click", () => trying(() => replay(location.hash.slice(1))));
$("skip").addEventListener("click", () => (rush = true));
$("more").addEventListener("click", () => trying(() => listPast(true)));
window.addEventListener("popstate", () => location.hash.length > 1 && trying(() => open(location.hash.slice(1))));
trying(start);
