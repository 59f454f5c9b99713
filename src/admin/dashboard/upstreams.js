// The servers of each upstream: health, load, and drain.

/** The columns of a server, named for assistive technology. */
const SERVER_COLUMNS = ["(Server)", "(Health)", "(In flight)", "(Latency p99)", "(Drain or make ready)"];
const SERVER_SIGNS = { healthy: "●", unhealthy: "▲", drain: "◌" };

let upstreams = [];

const takesRequests = ({ health, state: name }) => health === "healthy" && name === "ready";

const loadUpstreams = oneAtATime(async () => {
  try {
    upstreams = await call("upstreams");
  } catch {
    return;
  }
  drawUpstreams();
});

function drawUpstreams() {
  const busiest = Math.max(1, ...upstreams.flatMap(({ servers }) => servers.map(({ in_flight: count }) => count)));
  find("#upstreams > .none").hidden = upstreams.length > 0;
  syncRows(find("#upstream-list"), upstreams, {
    keyOf: ({ name }) => name,
    build: ({ name }) => create("div", { class: "upstream" }, create("h3", {}, name, create("small")),
      create("table", { "aria-label": `Servers of ${name}` },
        createHeading(SERVER_COLUMNS),
        create("tbody"))),
    update: (element, upstream) => {
      setText(find("small", element), describeUpstream(upstream));
      syncRows(find("tbody", element), upstream.servers, {
        keyOf: ({ address }) => address,
        build: ({ address }) => buildServer(upstream.name, address),
        update: (row, server) => updateServer(row, server, busiest),
      });
    },
  });
}

function describeUpstream({ balance, servers, limit, busy_workers: busy, waiting }) {
  const available = servers.filter(takesRequests).length;
  const parts = [balance, `${available} of ${servers.length} take requests`];
  if (isNumber(limit)) parts.push(`${formatRate(busy)} workers busy, limit ${formatNumber(limit)}`);
  const queued = Object.values(waiting ?? {}).reduce((sum, count) => sum + count, 0);
  if (queued) parts.push(`${formatNumber(queued)} waiting`);
  return parts.join(", ");
}

function buildServer(upstream, address) {
  return create("tr", {},
    create("td", { class: "mono clip", title: address }, address),
    create("td", { class: "health clip" }),
    create("td", {}, create("div", { class: "meter" }, create("i"), create("span"))),
    create("td", { class: "number" }),
    create("td", { class: "number" }, createButton("", () => toggleServer(upstream, address), { class: "small" })));
}

function updateServer(row, server, busiest) {
  const { address, state: name, in_flight: inFlight, p99_ms: p99, since } = server;
  const [, health, load, latency, action] = row.cells;
  const button = action.firstElementChild, meter = load.firstElementChild;
  const level = name === "drain" ? "drain" : server.health;
  setAttribute(health, "class", `health clip ${level}`);
  setAttribute(health, "data-glyph", SERVER_SIGNS[level]);
  setText(health, describeHealth(server));
  setAttribute(health, "title", since ? `${health.textContent}, since ${formatTime(since)}` : health.textContent);
  // A server without requests has no load to show, but a reason that needs the room.
  const isIdle = server.health === "unhealthy" && inFlight === 0;
  health.colSpan = isIdle ? 2 : 1;
  load.hidden = isIdle;
  setShare(meter.firstElementChild, inFlight / busiest);
  setText(meter.lastElementChild, `${formatNumber(inFlight)} in flight`);
  setText(latency, isNumber(p99) ? `p99 ${formatMillis(p99)} ms` : "p99 –");
  setText(button, name === "drain" ? "Ready" : "Drain");
  setAttribute(button, "aria-label", `${button.textContent} ${address}`);
}

function describeHealth({ state: name, health, reason, backup, requests_per_s: rate, error_ratio: errors }) {
  if (health === "unhealthy") return `${name === "drain" ? "draining, " : ""}${reason ?? "unhealthy"}`;
  if (name === "drain") return "draining";
  return `${formatRate(rate)} /s, ${formatShare(errors)} errors${backup ? ", backup" : ""}`;
}

async function toggleServer(upstreamName, address) {
  const upstream = upstreams.find(({ name }) => name === upstreamName);
  const server = upstream?.servers.find((candidate) => candidate.address === address);
  if (!server) return;
  const next = server.state === "drain" ? "ready" : "drain";
  const isLast = next === "drain" && !upstream.servers.some((other) => other !== server && takesRequests(other));
  const title = `Drain the last server of ${upstreamName}?`;
  const warning = "No other server takes requests: clients would receive 503.";
  if (isLast && !await confirmAction(title, warning, "Drain")) return;
  const changed = await attempt("Change", setServerState(upstreamName, address, next));
  const undo = () => attempt("Undo", setServerState(upstreamName, address, server.state)).then(loadUpstreams);
  const text = next === "drain" ? "drains: it takes no new requests" : "takes requests again";
  if (changed) showToast(`${address} ${text}.`, undo);
  loadUpstreams();
}

function setServerState(upstream, address, name) {
  const path = `upstreams/${encodeURIComponent(upstream)}/${encodeURIComponent(address)}`;
  return call(path, { method: "PUT", body: { state: name } });
}
