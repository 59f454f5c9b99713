// The rules, in file order, because the order decides. Other orders are a choice of the user.

const RESORT_MILLIS = 10_000;

const ruleTable = {
  open: new Set(),
  order: "file",
  /** The rules in the order shown, and when they were sorted. */
  sorted: [],
  sortedAt: 0,
};
const COLUMNS = { action: 3, matched: 5, mitigated: 6, keys: 7, bans: 8 };

const ORDERS = {
  mitigated: (rule) => (rule.mitigatedRate ?? 0) + (rule.wouldRate ?? 0),
  matched: (rule) => rule.matchedRate ?? 0,
  bans: (rule) => rule.bans ?? 0,
};

const ruleNamed = (name) => state.rules.find((rule) => rule.name === name);
const ruleRow = (name) => rowWithKey(find("table.rules"), name);

/** Returns the durations of a rule's bans, shortest first. Empty for a rule that throttles. */
function banDurations({ escalate, duration }) {
  if (escalate?.length) return escalate;
  return duration && !/^0[a-z]*$/.test(duration) ? [duration] : [];
}

function describeLimit({ limit, period }) {
  if (!limit) return "every match";
  return period ? `${formatNumber(limit)} / ${period}` : `${formatNumber(limit)} at once`;
}

function describeKey({ key, limit }) {
  if (!limit) return ["–"];
  return key.length ? key : ["all requests"];
}

function setUpRules() {
  find("#rules-order").onchange = (event) => {
    ruleTable.order = event.target.value;
    ruleTable.sortedAt = 0;
    drawRules();
  };
}

function drawRules() {
  const table = find("table.rules");
  sortRules(table);
  syncRows(table, ruleTable.sorted, { keyOf: (rule) => rule.name, build: buildRule, update: updateRule, skip: 1 });
  const isEmpty = state.status !== null && state.rules.length === 0;
  table.hidden = isEmpty;
  find("#no-rules").hidden = !isEmpty;
  find("#rules .inline").hidden = isEmpty;
  setText(find("#rules-count"), state.rules.length ? String(state.rules.length) : "");
}

/** Sorts at most every 10 s, and never under the pointer or the focus. */
function sortRules(table) {
  const score = ORDERS[ruleTable.order];
  if (!score) {
    ruleTable.sorted = state.rules;
    return;
  }
  const isDue = Date.now() - ruleTable.sortedAt > RESORT_MILLIS && !isHeld(table);
  if (isDue || ruleTable.sortedAt === 0) {
    ruleTable.sorted = [...state.rules].sort((a, b) => score(b) - score(a));
    ruleTable.sortedAt = Date.now();
  } else {
    const kept = ruleTable.sorted.map(({ name }) => ruleNamed(name)).filter(Boolean);
    ruleTable.sorted = [...kept, ...state.rules.filter((rule) => !kept.includes(rule))];
  }
}

function buildRule({ name }) {
  const panelId = `rule-panel-${name}`;
  const toggle = createButton(name, () => toggleRule(name), { "aria-expanded": "false", "aria-controls": panelId });
  const figure = (label, className = "number") => create("td", { class: className, "data-label": label }, "–");
  const summary = create("tr", {},
    create("td", {},
      create("div", { class: "name" }, toggle, create("span", { class: "badges" })),
      create("small", { class: "mono" })),
    create("td", {}, create("span"), create("small")),
    create("td", { class: "wide" }),
    create("td", {}, create("span"), create("small")),
    create("td", {}, buildSparkline()),
    figure("matched/s"), figure("mitigated/s"), figure(null, "number wide"), figure("bans"));
  const loading = create("p", { class: "muted" }, "Loading");
  const panel = create("td", { colspan: 9 }, create("div", { class: "panel" }, loading));
  return create("tbody", {}, summary, create("tr", { id: panelId, hidden: true }, panel));
}

function updateRule(body, rule) {
  if (body.rule !== rule) drawRuleSettings(body, rule);
  const { cells } = body.rows[0];
  const rate = rule.dry_run ? rule.wouldRate : rule.mitigatedRate;
  // A rule that throttles has only bans by hand.
  const canHaveBans = banDurations(rule).length > 0 || rule.bans > 0;
  drawFigure(cells[COLUMNS.matched], formatRate(rule.matchedRate));
  drawFigure(cells[COLUMNS.mitigated], rule.dry_run && rate >= 0.05 ? `(${formatRate(rate)})` : formatRate(rate));
  drawFigure(cells[COLUMNS.keys], rule.limit ? formatNumber(rule.keys) : "–");
  drawFigure(cells[COLUMNS.bans], canHaveBans ? formatNumber(rule.bans) : "–");
  const isOpen = ruleTable.open.has(rule.name);
  setAttribute(body, "class", isOpen ? "open" : "");
  setAttribute(find("button", body), "aria-expanded", isOpen);
  body.rows[1].hidden = !isOpen;
}

/** Writes what a reload can change. */
function drawRuleSettings(body, rule) {
  const [name, limit, key, action, spark] = body.rows[0].cells;
  body.rule = rule;
  const badges = [
    rule.dry_run && create("span", { class: "badge dry" }, "dry run"),
    rule.candidate && create("span", { class: "badge" }, "candidate"),
    !rule.enabled && create("span", { class: "badge" }, "off"),
  ];
  find(".badges", name).replaceChildren(...badges.filter(Boolean));
  const condition = rule.mitigate ?? rule.count ?? "";
  setText(find("small", name), condition);
  setAttribute(find("small", name), "title", condition);
  setText(limit.firstElementChild, describeLimit(rule));
  setText(limit.lastElementChild, rule.limit ? rule.algorithm : "no counter");
  // The column is narrow; the opened rule shows the whole expressions.
  const [first, ...others] = describeKey(rule).map((part) => part.replace(/^http\.request\./, ""));
  key.replaceChildren(create("small", { class: "mono" }, first), create("small", { class: "mono" }, others.join(" ")));
  setAttribute(key, "title", rule.key.join(" "));
  action.firstElementChild.replaceWith(actionChip(rule.action, rule.dry_run, rule.action));
  const durations = banDurations(rule);
  setText(action.lastElementChild, durations.length ? `ban ${durations.join(", ")}` : rule.limit ? "throttle" : "");
  setAttribute(find("svg", spark).lastElementChild, "class", mitigatedClass(rule));
  const mitigated = body.rows[0].cells[COLUMNS.mitigated];
  setAttribute(mitigated, "data-label", rule.dry_run ? "would/s" : "mitigated/s");
  setAttribute(mitigated, "title", rule.dry_run ? "A dry run: what it would mitigate" : null);
  stepChanged = true;
}

function drawFigure(cell, text) {
  setText(cell, text);
  cell.classList.toggle("zero", text === "0" || text === "–");
}

function toggleRule(name) {
  if (!ruleTable.open.delete(name)) {
    ruleTable.open.add(name);
    loadRulePanel(name);
  }
  drawRules();
}

/** Opens a rule and moves the focus to it. */
function openRule(name) {
  if (!ruleNamed(name)) return;
  ruleTable.open.add(name);
  drawRules();
  loadRulePanel(name);
  const row = ruleRow(name);
  row.scrollIntoView({ block: "start" });
  find("button", row).focus({ preventScroll: true });
}
