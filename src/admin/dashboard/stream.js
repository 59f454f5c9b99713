// The event stream. EventSource cannot send a token, and a token in a URL ends up in logs, so `fetch` reads the stream.

const SILENCE_MILLIS = 10_000;
const STALE_MILLIS = 4_000;
const HIDDEN_MILLIS = 60_000;
const MAX_BACKOFF_MILLIS = 15_000;

const stream = {
  /** Ends the current stream. `null` before the first one. */
  controller: null,
  /** Whether there is no stream on purpose: the tab has been hidden for a minute. */
  isSuspended: false,
  backoffMillis: 1_000,
  /** When the next attempt starts. 0 during an attempt. */
  retryAt: 0,
  retryTimer: 0,
  /** Why the newest stream ended, if the gateway gave a reason. */
  reason: "",
};

/** Opens the stream with the filters of the decisions, in place of the current one. */
async function openStream() {
  closeStream();
  const controller = stream.controller = new AbortController();
  stream.reason = "";
  try {
    const response = await request(`events${streamFilters()}`, { signal: controller.signal });
    if (!response.ok) await readJson(response);
    await readEvents(response.body, controller);
  } catch (error) {
    if (error.status) stream.reason = error.message;
  }
  if (stream.controller === controller) retryLater();
}

function closeStream() {
  clearTimeout(stream.retryTimer);
  stream.retryAt = 0;
  const old = stream.controller;
  stream.controller = null;
  old?.abort();
}

function retryLater() {
  if (pageState() !== "auth") setPageState("stale");
  stream.retryAt = Date.now() + stream.backoffMillis;
  stream.retryTimer = setTimeout(reconnect, stream.backoffMillis);
  stream.backoffMillis = Math.min(stream.backoffMillis * 1.6, MAX_BACKOFF_MILLIS);
  drawConnection();
}

/** Reads everything again, because there is no replay, and opens the stream. */
async function reconnect() {
  clearTimeout(stream.retryTimer);
  stream.retryAt = 0;
  await loadAll().catch(() => {});
  if (!stream.isSuspended) openStream();
}

/** Reads events until the stream ends, or until nothing has arrived for 10 s. */
async function readEvents(body, controller) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const silence = setTimeout(() => controller.abort(), SILENCE_MILLIS);
    const { value, done } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    const blocks = (buffer + value).split("\n\n");
    buffer = blocks.pop();
    if (stream.controller === controller) blocks.forEach(handleEvent);
  }
}

function handleEvent(block) {
  let type = "", data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) type = line.slice(6).trim();
    else if (line.startsWith("data:")) data += line.slice(5);
  }
  if (!data || !Object.hasOwn(EVENT_HANDLERS, type)) return;
  stream.backoffMillis = 1_000;
  EVENT_HANDLERS[type](JSON.parse(data));
}

/** What a marker's kind says to read again. */
const RELOADS = {
  ban: () => loadBans(),
  store: () => loadStatus(),
  server: () => loadUpstreams(),
  reload: () => loadAll().catch(() => {}),
};

const EVENT_HANDLERS = {
  tick: applyTick,
  decision: addDecision,
  skipped: ({ count }) => { feed.skipped = count; },
  mark(marker) {
    state.history?.addMarker(marker);
    if (Object.hasOwn(RELOADS, marker.kind)) RELOADS[marker.kind]();
  },
};

/** Shows whether figures are live. Called once a second. */
function drawConnection() {
  const age = Date.now() - state.lastTickAt;
  if (pageState() === "live" && age > STALE_MILLIS) setPageState("stale");
  const isStale = pageState() === "stale";
  const banner = find("#banner");
  banner.hidden = !isStale;
  // Only this sentence is announced: the seconds after it change all the time.
  setText(find("strong", banner), isStale ? "Stream lost." : "");
  setText(find("#live span"), { live: "live", stale: "lost", auth: "token needed" }[pageState()] ?? "connecting");
  if (!isStale) return;
  const last = state.lastTickAt ? `Last update ${formatDuration(age / 1000)} ago` : "No update yet";
  const seconds = Math.ceil((stream.retryAt - Date.now()) / 1000);
  const retry = seconds > 0 ? `retrying in ${seconds} s` : "retrying";
  setText(find("span", banner), `${last}, ${retry}.${stream.reason ? ` ${stream.reason}.` : ""}`);
}

/** A tab that nobody sees ends its stream after a minute, and asks for nothing before that. */
function followVisibility() {
  let timer = 0;
  const suspend = () => {
    stream.isSuspended = true;
    closeStream();
  };
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.hidden) {
      timer = setTimeout(suspend, HIDDEN_MILLIS);
    } else if (stream.isSuspended) {
      stream.isSuspended = false;
      reconnect();
    } else {
      requestDraw();
    }
  });
}
