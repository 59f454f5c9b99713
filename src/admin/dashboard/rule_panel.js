// A rule, opened: its hottest keys, its expressions, how its keys are distributed, and its candidate.

const HOTTEST_KEYS = 10;
/** The share of the limit from which a bar is yellow. */
const NEAR_LIMIT = 0.8;
/** How long a ban by hand lasts if the rule throttles. */
const DEFAULT_BAN = "10m";

async function loadRulePanel(name) {
  const path = `rules/${encodeURIComponent(name)}`;
  let keys, details;
  try {
    [keys, details] = await Promise.all([call(`${path}/top?n=${HOTTEST_KEYS}`), call(path)]);
  } catch (error) {
    const panel = ruleRow(name)?.querySelector(".panel");
    if (panel && !panel.querySelector(".keys")) panel.replaceChildren(create("p", { class: "error" }, `${error.message}.`));
    return;
  }
  const body = ruleRow(name), rule = ruleNamed(name);
  if (body && rule && ruleTable.open.has(name)) drawRulePanel(body, rule, keys, details);
}

function drawRulePanel(body, rule, keys, details) {
  const panel = find(".panel", body);
  if (!find(".keys", panel)) panel.replaceChildren(buildKeysColumn(rule.name), create("div", { class: "about" }));
  setAttribute(panel, "class", `panel ${rule.action}`);
  drawHottestKeys(panel, rule, keys);
  const showBansButton = find(".show-bans", panel);
  showBansButton.hidden = !rule.bans;
  setText(showBansButton, `Show its ${plural(rule.bans ?? 0, "ban")}`);
  const about = find(".about", panel);
  if (!isHeld(about)) about.replaceChildren(...aboutRule(rule, details));
}

// === Hottest keys ===

function buildKeysColumn(name) {
  const heading = (text) => create("th", {}, text);
  const table = create("table", { class: "keys", "aria-label": `Hottest keys of ${name}` },
    create("thead", {}, create("tr", {}, ["Key", "Used of the limit", "Ban ends in"].map(heading), create("th", {}, create("span", { class: "hidden" }, "Actions")))),
    create("tbody"));
  return create("div", {},
    create("h3", {}, "Hottest keys"),
    table,
    create("p", { class: "none" }),
    create("div", { class: "row" },
      create("button", { type: "button", class: "small", onclick: () => showDecisions(name) }, "Show its decisions"),
      create("button", { type: "button", class: "small show-bans", onclick: () => showBans("all", { rule: name }) })));
}

function drawHottestKeys(panel, rule, keys) {
  const table = find(".keys", panel), rows = find("tbody", table), none = find(".none", panel);
  table.hidden = keys.length === 0;
  none.hidden = keys.length > 0;
  setText(none, rule.limit ? "No key has a count above 0." : "This rule has no counter: it acts on every match.");
  const shown = isHeld(rows) ? keys.filter((key) => rowWithKey(rows, keyId(key))) : keys;
  if (isHeld(rows)) {
    for (const key of shown) updateHotKey(rowWithKey(rows, keyId(key)), rule, key);
    return;
  }
  syncRows(rows, shown, {
    keyOf: keyId,
    build: (key) => buildHotKey(rule.name, key),
    update: (row, key) => updateHotKey(row, rule, key),
  });
}

const keyId = ({ id, key }) => id ?? key;

function buildHotKey(ruleName, { key, note }) {
  const row = create("tr", {},
    create("td", {}, create("div", { class: "mono clip", title: key }, key || "all requests"), create("small", {}, note ?? "")),
    create("td", {}, create("div", { class: "meter" }, create("i"), create("span"))),
    create("td"),
    create("td", {}, create("div", { class: "row" },
      create("button", { type: "button", class: "small", onclick: () => toggleBan(ruleName, row.hotKey) }),
      create("button", { type: "button", class: "small", "aria-label": `Explain ${key}`, onclick: () => explainKey(ruleName, row.hotKey) }, "Explain"))));
  return row;
}

function updateHotKey(row, rule, hotKey) {
  const { key, count, limit, banned_until: bannedUntil, note } = hotKey;
  row.hotKey = hotKey;
  const [about, used, ban] = row.cells, meter = used.firstElementChild, button = find("button", row);
  const share = bannedUntil ? 1 : count / limit;
  const level = bannedUntil || share > 1 ? "over" : share >= NEAR_LIMIT ? "near" : "";
  setText(about.lastElementChild, note ?? "");
  setAttribute(meter, "class", `meter ${level}`.trim());
  setShare(meter.firstElementChild, share);
  setText(meter.lastElementChild, bannedUntil ? `over ${formatNumber(limit)}` : `${formatNumber(count)} of ${formatNumber(limit)}`);
  setText(ban, bannedUntil ? formatRemaining(bannedUntil) : "–");
  setText(button, bannedUntil ? "Unban" : "Ban");
  setAttribute(button, "aria-label", `${button.textContent} ${key} of ${rule.name}`);
}

/** Unbans a listed key, or bans it after a question. */
async function toggleBan(ruleName, hotKey) {
  const name = hotKey.key || "all requests";
  if (hotKey.banned_until) {
    const ban = await attempt("Unban", removeBan(ruleName, hotKey));
    if (ban) showToast(`${name} is unbanned${scopeNote(ban)}.`, () => restoreBan(ban));
  } else {
    const rule = ruleNamed(ruleName), duration = banDurations(rule)[0] ?? DEFAULT_BAN;
    const text = `${rule.name} will apply ${rule.action} to ${name} for ${duration}.`;
    if (!await confirmAction("Ban this key?", text, `Ban for ${duration}`)) return;
    const identity = hotKey.id ? { id: hotKey.id } : { key: hotKey.key };
    const ban = await attempt("Ban", call("mitigations", { method: "POST", body: { rule: ruleName, ...identity, duration } }));
    if (ban) showToast(`${name} is banned for ${duration}${scopeNote(ban)}.`, () => attempt("Undo", removeBan(ruleName, ban)).then(() => bansChanged(ruleName)));
  }
  bansChanged(ruleName);
}

/** Fills the form with the newest request of a key. A hashed value cannot be sent again, so `keys` carries it. */
function explainKey(ruleName, { key, parts, sample }) {
  const isHashed = parts?.some(({ value }) => /^h:/.test(value ?? ""));
  const keys = sample?.keys ?? (isHashed ? { [ruleName]: key } : null);
  fillExplain({ ...sample, keys });
}

// === About the rule ===

function aboutRule(rule, details) {
  const { distribution, candidate } = details;
  const limit = [describeLimit(rule), rule.burst && `burst ${formatNumber(rule.burst)}`, rule.algorithm].filter(Boolean);
  return [
    create("h3", {}, "What it does"),
    factList([
      ["Counts", rule.count ?? "–", "mono"],
      ["Mitigates", rule.mitigate ?? "–", "mono"],
      ["Key", describeKey(rule).join(" + "), "mono"],
      ["Limit", limit.join(", ")],
      ["Last match", rule.last_matched ? `${formatAge(rule.last_matched)} ago` : "never"],
    ]),
    ...(distribution ? [create("h3", {}, "Keys by used share of the limit, log scale"), histogram(distribution)] : []),
    ...(candidate ? aboutCandidate(rule, candidate) : []),
  ];
}

function aboutCandidate(rule, candidate) {
  const burst = candidate.burst ? `, burst ${formatNumber(candidate.burst)}` : "";
  const share = rule.matchedRate > 0 ? `, ${formatShare(rule.stricterRate / rule.matchedRate)} of what matches` : "";
  return [
    create("h3", {}, `Candidate: ${candidate.algorithm} ${describeLimit(candidate)}${burst}`),
    factList([
      ["Also refuses", `${formatRate(rule.stricterRate)} per second that the rule admits${share}`],
      ["Would admit", `${formatRate(rule.laxerRate)} per second that the rule refuses`],
      ["Differs on", `${plural(candidate.differing_keys, "key")}; a candidate is never enforced`],
    ]),
  ];
}

function factList(facts) {
  return create("dl", { class: "facts" }, facts.flatMap(([term, text, style]) => [create("dt", {}, term), create("dd", { class: style }, text)]));
}

/** Shows how many keys use which share of the limit. */
function histogram({ labels, keys }) {
  const max = Math.log1p(Math.max(...keys));
  const rows = keys.map((count, index) => {
    const isOver = index === keys.length - 1;
    const bar = create("i", { class: isOver ? "over" : null, "aria-hidden": "true" });
    setShare(bar, count > 0 ? Math.max(0.005, Math.log1p(count) / max) : 0);
    return create("li", {}, create("span", {}, labels[index]), bar, create("b", {}, formatNumber(count)));
  });
  return create("ul", { class: "histogram" }, rows);
}
