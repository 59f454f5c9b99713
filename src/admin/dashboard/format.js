// Formats numbers, times and actions. All times are UTC, as in the logs.

/** The layers of the chart, from the bottom up. */
const LAYERS = {
  forward: "Forwarded",
  delay: "Delayed",
  challenge: "Challenged",
  shadow: "Shadowed",
  block: "Blocked",
  other: "Other",
};
const LAYER_NAMES = Object.keys(LAYERS);

/** The layer of each action that does not have one of its own. The rest counts as forwarded. */
const LAYER_OF = { tarpit: "delay", divert: "shadow", close: "block", own: "other" };

const GLYPHS = {
  forward: "→", allow: "✓", tag: "#", log: "≡",
  delay: "◔", tarpit: "◕", challenge: "◇", shadow: "◐", divert: "↷", block: "–", close: "×", own: "·",
};
const PARTICIPLES = {
  forward: "forwarded", allow: "allowed", tag: "tagged", log: "logged",
  delay: "delayed", tarpit: "held, blocked", challenge: "challenged", shadow: "shadowed", divert: "diverted",
  block: "blocked", close: "closed", own: "gateway error",
};

const layerOf = (action) => LAYER_OF[action] ?? (action in LAYERS ? action : "forward");
const participle = (action) => PARTICIPLES[action] ?? action;

/** Returns the sign of an action: its colour, its glyph and its word. A dry run is dashed and says "would". */
function actionChip(action, isDryRun = false, text = isDryRun ? `would ${action}` : participle(action)) {
  const dashed = isDryRun ? " dry" : "";
  return create("span", { class: `chip ${action}${dashed}`, "data-glyph": GLYPHS[action] ?? "·" }, text);
}

const integers = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

const formatNumber = (value) => (isNumber(value) ? integers.format(value) : "–");

/** Formats a rate: one decimal below 9.95, and 0 below 0.05. */
function formatRate(value) {
  if (!isNumber(value)) return "–";
  if (value >= 9.95) return integers.format(value);
  return value < 0.05 ? "0" : value.toFixed(1);
}

function formatShare(ratio) {
  if (!isNumber(ratio)) return "–";
  if (ratio < 0.0005) return "0 %";
  return ratio >= 0.0995 ? `${Math.round(ratio * 100)} %` : `${(ratio * 100).toFixed(1)} %`;
}

const plural = (count, singular, many = `${singular}s`) => `${formatNumber(count)} ${count === 1 ? singular : many}`;

/** Makes a sentence of a message that the gateway wrote. */
const toSentence = (message) => `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;

/** Formats a duration with its two largest units. */
function formatDuration(seconds) {
  const total = Math.max(0, Math.round(seconds));
  const days = Math.floor(total / 86_400);
  const hours = Math.floor(total / 3_600) % 24;
  const minutes = Math.floor(total / 60) % 60;
  if (days) return `${days}d ${hours}h`;
  if (hours) return `${hours}h ${minutes}m`;
  return minutes ? `${minutes}m ${total % 60}s` : `${total}s`;
}

/** Returns a time of the API, an RFC 3339 string, in milliseconds since the epoch. */
const toMillis = (time) => Date.parse(time);

/** How far the gateway's clock is ahead of this browser's, in milliseconds; set by each tick. */
let clockSkew = 0;
const gatewayNow = () => Date.now() + clockSkew;

const formatClock = (millis) => new Date(millis).toISOString().slice(11, 19);
const formatAge = (time) => formatDuration((gatewayNow() - toMillis(time)) / 1000);
const formatRemaining = (time) => formatDuration((toMillis(time) - gatewayNow()) / 1000);

/** Formats a time of day, with the date if it is not today. */
function formatTime(time) {
  const text = new Date(toMillis(time)).toISOString();
  const today = new Date(gatewayNow()).toISOString().slice(0, 10);
  return text.startsWith(today) ? text.slice(11, 19) : text.slice(0, 16).replace("T", " ");
}

/** Formats where a client is, as far as it is known: "AT AS64496". */
function formatOrigin({ country, asn }) {
  return [country, asn == null ? null : `AS${asn}`].filter(Boolean).join(" ");
}

const formatPath = ({ path, query }) => (query ? `${path}?${query}` : path);
const formatRequest = (decision) => `${decision.method} ${formatPath(decision)}`;
