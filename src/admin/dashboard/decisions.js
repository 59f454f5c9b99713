// The newest decisions. The gateway filters before it samples: a change of the filters opens the stream again.

const KEPT_DECISIONS = 200;
const SHOWN_DECISIONS = 60;
const MAX_WAITING = 60;
/** How many rows are added per draw, so that the eye can follow. */
const ADDED_PER_DRAW = 6;
/** How many of the newest rows are compared with a new decision. */
const COMPARED_ROWS = 12;
const FILTER_DELAY_MILLIS = 250;
const IP_ADDRESS = /^(\d{1,3}(\.\d{1,3}){3}|[0-9a-f]*:[0-9a-f:.]*:[0-9a-f:.]*)$/i;

const NOTHING_MITIGATED = "No request is mitigated. Choose “every action” to see forwarded requests too.";

const feed = {
  /** The decisions shown or kept, newest first, and those that wait for the next draw. */
  rows: [],
  waiting: [],
  isPaused: false,
  /** When the feed was paused, and how many decisions have arrived since. */
  pausedAt: 0,
  missed: 0,
  /** How many decisions of the newest second were counted and not sent. */
  skipped: 0,
  filters: { rule: "", action: "mitigated", text: "" },
};

function setUpDecisions() {
  const { filters } = feed;
  const actions = [["mitigated", "mitigated"], ["", "every action"]];
  find("#filter-action").append(...actions.map(([value, text]) => create("option", { value }, text)));
  let timer = 0;
  const change = (delay) => {
    const before = streamFilters();
    filters.rule = find("#filter-rule").value;
    filters.action = find("#filter-action").value;
    filters.text = find("#filter-text").value.trim();
    drawDecisions();
    clearTimeout(timer);
    if (streamFilters() !== before) timer = setTimeout(openStream, delay);
  };
  find("#filter-rule").onchange = () => change(0);
  find("#filter-action").onchange = () => change(0);
  find("#filter-text").oninput = () => change(FILTER_DELAY_MILLIS);
  find("#pause").onclick = togglePause;
}

function togglePause() {
  feed.isPaused = !feed.isPaused;
  Object.assign(feed, { pausedAt: Date.now(), missed: 0 });
  setAttribute(find("#pause"), "aria-pressed", feed.isPaused);
  drawDecisions();
}

/** Shows the decisions of one rule, from elsewhere on the page. */
function showDecisions(rule) {
  const select = find("#filter-rule");
  select.value = rule;
  select.dispatchEvent(new Event("change"));
  goTo("decisions");
}

/** Returns the query of the stream. The gateway filters by address, but not by path. */
function streamFilters() {
  const { rule, action, text } = feed.filters;
  return queryString({ rule, action: action === "mitigated" ? "" : action, ip: IP_ADDRESS.test(text) ? text : "" });
}

function isWanted(decision) {
  const { rule, action, text } = feed.filters;
  if (rule && decision.rule !== rule) return false;
  if (action === "mitigated" && (!decision.rule || layerOf(decision.action) === "forward")) return false;
  if (action && action !== "mitigated" && decision.action !== action) return false;
  const searched = `${decision.client_ip} ${formatPath(decision)} ${decision.key ?? ""} ${decision.id}`;
  return searched.toLowerCase().includes(text.toLowerCase());
}

/** Takes a decision of the stream. Equal decisions share a row with a count. */
function addDecision(decision) {
  if (!isWanted(decision)) return;
  const repeat = decision.repeat ?? 1;
  if (feed.isPaused) {
    feed.missed += repeat;
    return;
  }
  const { rule, action, key, method, path, dry_run: isDryRun } = decision;
  const kind = JSON.stringify([rule, action, key, method, path, isDryRun]);
  const equal = [...feed.waiting, ...feed.rows.slice(0, COMPARED_ROWS)].find((row) => row.kind === kind);
  if (equal) {
    equal.repeat += repeat;
    return;
  }
  feed.waiting.push({ ...decision, kind, repeat });
  if (feed.waiting.length > MAX_WAITING) feed.waiting.shift();
}

function drawDecisions() {
  const region = find("#decisions .scroll");
  const held = isHeld(region);
  if (!feed.isPaused && !held) {
    const added = feed.waiting.splice(0).filter(isWanted).slice(-ADDED_PER_DRAW);
    feed.rows = [...added.reverse(), ...feed.rows].slice(0, KEPT_DECISIONS);
  }
  const shown = feed.rows.filter(isWanted).slice(0, SHOWN_DECISIONS);
  syncRows(find("tbody", region), shown, { keyOf: byIndex, build: buildDecision, update: updateDecision });
  const none = find(".none", region);
  none.hidden = shown.length > 0;
  setText(none, feed.filters.action === "mitigated" ? NOTHING_MITIGATED : "No decision matches yet.");
  setText(find("#decisions-note"), feedNote(held));
}

function feedNote(held) {
  const pausedFor = formatDuration((Date.now() - feed.pausedAt) / 1000);
  if (feed.isPaused) return `Paused ${pausedFor} ago; ${formatNumber(feed.missed)} more since then.`;
  if (held) return "Rows stay while the pointer or the focus is here.";
  if (!feed.skipped) return feed.rows.length > 0 ? "All decisions that match." : "";
  return `A sample: ${formatNumber(feed.skipped)} decisions of the last second are counted but not shown.`;
}

/** Builds a row for any decision: rows stay, and decisions move through them. */
function buildDecision() {
  const client = createButton("", () => openClient(row.decision.client_ip), { class: "link mono clip" });
  const explainButton = createButton("explain", () => fillExplain(requestOf(row.decision)), { class: "link" });
  const row = create("tr", {},
    create("td", {}, create("span"), create("small")),
    create("td", {}, client, create("small")),
    create("td", {}, create("div", { class: "mono clip" }), create("small")),
    create("td", {}, create("div", { class: "clip" }), create("small")),
    create("td", {}, create("div"), create("small", {}, explainButton)));
  return row;
}

function updateDecision(row, decision) {
  const [time, client, request, rule, action] = row.cells;
  setText(time.lastElementChild, decision.repeat > 1 ? `× ${formatNumber(decision.repeat)}` : "");
  if (row.decision === decision) return;
  row.decision = decision;
  const { client_ip: ip, status, user_agent: agent, count, limit, banned } = decision;
  const usage = banned ? "banned" : limit ? `${formatNumber(count)} of ${formatNumber(limit)}` : "";
  setText(time.firstElementChild, formatClock(toMillis(decision.ts)));
  setTextAndTitle(client.firstElementChild, ip);
  setText(client.lastElementChild, formatOrigin(decision));
  setTextAndTitle(request.firstElementChild, formatRequest(decision));
  setTextAndTitle(request.lastElementChild, [status, agent].filter(Boolean).join(", "));
  setTextAndTitle(rule.firstElementChild, decision.rule ?? "–");
  setText(rule.lastElementChild, usage);
  action.firstElementChild.replaceChildren(actionChip(decision.action, decision.dry_run));
  setAttribute(find("button", action), "aria-label", `Explain ${formatRequest(decision)} from ${ip}`);
}

/** Returns the `explain` request of a decision. Only a forwarded request has the origin server's status. */
function requestOf(decision) {
  const { method, host, client_ip: ip, asn, country, ja4, status, user_agent: agent, rule, key, action } = decision;
  const scheme = ja4 ? "https" : "http";
  return {
    method,
    url: `${scheme}://${host}${formatPath(decision)}`,
    ip, asn, country, ja4,
    status: layerOf(action) === "forward" ? status : null,
    headers: agent ? { "user-agent": agent } : null,
    keys: rule && /(^| )h:/.test(key ?? "") ? { [rule]: key } : null,
  };
}
