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
    const isEmpty = panel && !find(".keys", panel);
    if (isEmpty) panel.replaceChildren(create("p", { class: "error" }, toSentence(error.message)));
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
  const table = create("table", { class: "keys", "aria-label": `Hottest keys of ${name}` },
    createHeading(["Key", "Used of the limit", "Ban ends in", "(Actions)"]),
    create("tbody"));
  return create("div", {},
    create("h3", {}, "Hottest keys"),
    table,
    create("p", { class: "none" }),
    create("div", { class: "row" },
      createButton("Show its decisions", () => showDecisions(name), { class: "small" }),
      createButton("", () => showBans("all", { rule: name }), { class: "small show-bans" })));
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

function buildHotKey(ruleName, { key }) {
  const name = key || "all requests";
  const explainButton = createButton("Explain", () => explainKey(ruleName, row.hotKey), { class: "small" });
  setAttribute(explainButton, "aria-label", `Explain ${name}`);
  const row = create("tr", {},
    create("td", {}, create("div", { class: "mono clip", title: name }, name), create("small")),
    create("td", {}, create("div", { class: "meter" }, create("i"), create("span"))),
    create("td"),
    create("td", {}, create("div", { class: "row" },
      createButton("", () => toggleBan(ruleName, row.hotKey), { class: "small" }), explainButton)));
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
  const usage = `${formatNumber(count)} of ${formatNumber(limit)}`;
  setText(meter.lastElementChild, bannedUntil ? `over ${formatNumber(limit)}` : usage);
  setText(ban, bannedUntil ? formatRemaining(bannedUntil) : "–");
  setAttribute(ban, "class", bannedUntil ? "banned" : null);
  setText(button, bannedUntil ? "Unban" : "Ban");
  setAttribute(button, "aria-label", `${button.textContent} ${key} of ${rule.name}`);
}

function toggleBan(ruleName, hotKey) {
  return hotKey.banned_until ? unbanKey(ruleName, hotKey) : banKey(ruleName, hotKey);
}

async function unbanKey(ruleName, hotKey) {
  const ban = await attempt("Unban", removeBan(ruleName, hotKey));
  if (ban) showToast(`${hotKey.key || "all requests"} is unbanned${scopeNote(ban)}.`, () => restoreBan(ban));
  bansChanged(ruleName);
}

/** Bans a listed key by hand, after a question. The id names the key: its text may be hashed or cut off. */
async function banKey(ruleName, { id, key }) {
  const rule = ruleNamed(ruleName), name = key || "all requests", duration = banDurations(rule)[0] ?? DEFAULT_BAN;
  const text = `${ruleName} will apply ${rule.action} to ${name} for ${duration}.`;
  if (!await confirmAction("Ban this key?", text, `Ban for ${duration}`)) return;
  const body = { rule: ruleName, ...(id ? { id } : { key }), duration };
  const ban = await attempt("Ban", call("mitigations", { method: "POST", body }));
  const undo = async () => {
    await attempt("Undo", removeBan(ruleName, ban));
    bansChanged(ruleName);
  };
  if (ban) showToast(`${name} is banned for ${duration}${scopeNote(ban)}.`, undo);
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
  const burst = rule.burst && `burst ${formatNumber(rule.burst)}`;
  const limit = [describeLimit(rule), burst, rule.algorithm].filter(Boolean);
  return [
    create("h3", {}, "What it does"),
    factList([
      ["Counts", rule.count ?? "–", "mono"],
      ["Mitigates", rule.mitigate ?? "–", "mono"],
      ["Key", describeKey(rule).join(" + "), "mono"],
      ["Limit", limit.join(", ")],
      ["Last match", rule.last_matched ? `${formatAge(rule.last_matched)} ago` : "never"],
    ]),
    ...ruleChart(rule),
    ...(distribution ? [create("h3", {}, "Keys by used share of the limit, log scale"), histogram(distribution)] : []),
    ...(candidate ? aboutCandidate(rule, candidate) : []),
  ];
}

/** Shows the last 15 minutes of a rule in a larger drawing than its row. */
function ruleChart(rule) {
  const series = state.history?.rules.get(rule.name);
  if (!series) return [];
  const svg = buildSparkline();
  svg.classList.add("large");
  setAttribute(svg.lastElementChild, "class", mitigatedClass(rule));
  drawSparkline(svg, series);
  const peak = (values) => formatRate(Math.max(...values));
  const verb = rule.dry_run ? "would mitigate" : "mitigated";
  const title = `15 minutes: matched up to ${peak(series.matched)}, ${verb} up to ${peak(series.mitigated)} per second`;
  return [create("h3", {}, title), svg];
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
  const entry = ([term, text, style]) => [create("dt", {}, term), create("dd", { class: style }, text)];
  return create("dl", { class: "facts" }, facts.flatMap(entry));
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
