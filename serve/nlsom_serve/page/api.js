// The server's API, by plain fetch, since EventSource cannot send a key.

const KEY = "nlsom-key";

/** An unsuccessful response; `message` says what to do. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function setKey(key) {
  sessionStorage.setItem(KEY, key);
}

function headers(more = {}) {
  const key = sessionStorage.getItem(KEY);
  return key ? { Authorization: `Bearer ${key}`, ...more } : more;
}

async function call(path, options = {}) {
  const response = await fetch(path, { ...options, headers: headers(options.headers) });
  if (response.ok) return response;
  let message = `${response.status} ${response.statusText}`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // The body is not in this server's format: only the status is known.
  }
  throw new ApiError(response.status, message);
}

export const get = async (path) => (await call(path)).json();
export const getText = async (path) => (await call(path)).text();
export const getBlob = async (path) => (await call(path)).blob();
export const remove = async (path) => (await call(path, { method: "DELETE" })).json();

export async function post(path, body) {
  const response = await call(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return response.json();
}

/**
 * Calls `take({id, event, data})` for each event of a mindstorm. If the connection breaks, it calls `broke` and
 * resumes after the last event.
 */
export async function watch(id, take, { signal, broke }) {
  let last = "";
  for (let tries = 0; !signal.aborted; tries++) {
    try {
      const response = await call(`/v1/mindstorms/${id}/events`, {
        headers: last ? { "Last-Event-ID": last } : {},
        signal,
      });
      for await (const one of events(response.body)) {
        tries = 0;
        if (one.id) last = one.id;
        take(one);
        if (one.event === "decided" || one.event === "stopped") return;
      }
    } catch (error) {
      if (signal.aborted || error instanceof ApiError || tries > 20) throw error;
    }
    if (tries) broke?.();
    await new Promise((done) => setTimeout(done, Math.min(5000, 250 * 2 ** tries)));
  }
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        const one = { id: "", event: "message", data: "" };
        for (const line of text.slice(0, end).split("\n")) {
          const colon = line.indexOf(": ");
          if (colon > 0) one[line.slice(0, colon)] = line.slice(colon + 2);
        }
        if (one.data) yield { ...one, data: JSON.parse(one.data) };
      }
    }
  } finally {
    reader.cancel().catch(() => undefined); // the connection may already be closed
  }
}
