// The summary strip: seven tiles that say whether the gateway is healthy.

const SLOW_P99_MILLIS = 1_000;
const DAY_SECONDS = 86_400;
/** The steps about 12 minutes before the newest one. */
const COMPARED_STEPS = [STEPS - 146, STEPS - 145, STEPS - 144];

function setUpStrip() {
  const swatch = (layer) => create("i", { class: `swatch ${layer}`, "aria-hidden": "true" });
  find("#tile-decisions .split").append(...LAYER_NAMES.map((layer) => create("i", { class: layer })));
  find("#tile-decisions .parts").append(...Object.entries(LAYERS).map(([layer, name]) =>
    create("li", {}, swatch(layer), `${name} `, create("b", {}, "–"))));
  find("#tile-config button").onclick = showConfiguration;
}

function drawStrip() {
  if (state.lastTickAt) drawTrafficTiles();
  if (!state.status) return;
  drawStoreTile(state.status.store);
  drawConfigTile(state.status.config);
  drawCertificateTile(state.status.certificates);
}

/** Writes a tile. `level` is "warn", "crit" or empty. */
function drawTile(name, big, sub, level = "") {
  const tile = find(`#tile-${name}`);
  setText(find(".big button", tile) ?? find(".big", tile), big);
  setText(find(".sub", tile), sub);
  setAttribute(find(".sub", tile), "title", sub);
  setAttribute(tile, "class", `tile ${level}`.trim());
}

function drawTrafficTiles() {
  const total = LAYER_NAMES.reduce((sum, layer) => sum + (state.rates[layer] ?? 0), 0);
  drawTile("requests", formatNumber(total), comparison());
  const bar = find("#tile-decisions .split"), parts = find("#tile-decisions .parts");
  LAYER_NAMES.forEach((layer, index) => {
    const share = total > 0 ? state.rates[layer] / total : 0;
    bar.children[index].style.width = `${(share * 100).toFixed(2)}%`;
    setText(find("b", parts.children[index]), formatShare(share));
  });
  const { p50, p99 } = state.latency;
  const isSlow = p99 > SLOW_P99_MILLIS;
  drawTile("latency", `${formatMillis(p50)} / ${formatMillis(p99)}`, "ms, without holds", isSlow ? "warn" : "");
  drawTile("connections", formatNumber(state.connections), `of ${formatNumber(state.status?.connections.max)}`);
}

const formatMillis = (value) => (isNumber(value) && value < 9.95 ? value.toFixed(1) : formatNumber(value));

/** Says how much traffic there was 12 minutes ago, if the gateway was running then. */
function comparison() {
  if (!state.history || !state.status) return "";
  if (state.status.uptime_s < 13 * 60) return `started ${formatDuration(state.status.uptime_s)} ago`;
  const before = COMPARED_STEPS.reduce((sum, step) => sum + state.history.total(step), 0) / COMPARED_STEPS.length;
  return `${formatNumber(before)}, 12 min ago`;
}

function drawStoreTile(store) {
  if (store.state !== "ok") {
    drawTile("store", `${store.kind}: ${store.state}`, `${formatAge(store.since)}, ${storeOutage(store)}`, "warn");
    return;
  }
  const roundtrip = isNumber(store.roundtrip_p99_ms) ? `p99 ${store.roundtrip_p99_ms.toFixed(1)} ms, ` : "";
  drawTile("store", `${store.kind}, ok`, `${roundtrip}${plural(store.keys, "key")}`);
}

/** Says what the rules do while the store is not ok. */
function storeOutage({ state: name, local_fraction: fraction }) {
  if (name === "local") return `counts here at ${formatShare(fraction)} of limits`;
  return { degraded: "some calls fail", open: "admits every request", closed: "responds with 503" }[name] ?? name;
}

function drawConfigTile({ loaded_at: loadedAt, last_reload: reload, rules }) {
  if (reload && !reload.ok) drawTile("config", "reload refused", `in effect since ${formatTime(loadedAt)}`, "crit");
  else drawTile("config", reload ? "reloaded" : "as started", `${formatAge(loadedAt)} ago, ${plural(rules, "rule")}`);
}

function drawCertificateTile(certificates) {
  const [first] = [...certificates].sort((a, b) => toMillis(a.not_after) - toMillis(b.not_after));
  if (!first) {
    drawTile("certificate", "none", "no TLS listener");
    return;
  }
  const days = (toMillis(first.not_after) - gatewayNow()) / 1000 / DAY_SECONDS;
  const when = days < 0 ? "expired" : `${plural(Math.floor(days), "day")} left`;
  drawTile("certificate", when, first.name, days < 7 ? "crit" : days < 21 ? "warn" : "");
}
