// Active bans and exemptions: search, views, pages, and unban with Undo in place.

const BANS_PER_PAGE = 100;
const SEARCH_DELAY_MILLIS = 250;
const VIEWS = { all: "All", likely_false_positives: "Likely false positives", manual: "By hand", exemptions: "Exempt" };

const VIEW_HINTS = {
  likely_false_positives: "First offence, at most 5 requests mitigated, not by hand.",
  manual: "Bans that an operator made.",
  exemptions: "Requests of these clients pass before all rules.",
};

const bans = {
  view: "all",
  query: "",
  rule: "",
  /** The cursors of the pages before this one, and of this one. The first page has an empty cursor. */
  cursors: [""],
  /** The newest response, and the exemptions. */
  page: null,
  exemptions: [],
  /** Bans that were removed here less than 10 s ago, by id: `{ ban, index, at }`. Their rows stay, with Undo. */
  removed: new Map(),
  /** The rows in the order shown, and the selection that they belong to. */
  rows: [],
  shownSelection: "",
  /** When the order of the rows was taken from the gateway. */
  orderedAt: 0,
  /** The number of the newest call. Older responses are dropped. */
  newestCall: 0,
};

const banId = ({ id, rule, key }) => id ?? `${rule} ${key}`;
const selection = () => ({ view: bans.view, q: bans.query, rule: bans.rule });
const isExemptView = () => bans.view === "exemptions";

function setUpBans() {
  const viewButton = ([view, text]) =>
    createButton(text, () => selectBans({ view }), { "aria-pressed": String(view === bans.view) });
  find("#bans-views").append(...Object.entries(VIEWS).map(viewButton));
  let timer = 0;
  find("#bans-query").oninput = (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => selectBans({ query: event.target.value.trim() }), SEARCH_DELAY_MILLIS);
  };
  find("#bans-rule").onchange = (event) => selectBans({ rule: event.target.value });
  find("#bans-all").onclick = removeSelectedBans;
  find("#bans-next").onclick = () => turnPage([...bans.cursors, bans.page.next]);
  find("#bans-previous").onclick = () => turnPage(bans.cursors.slice(0, -1));
}

function selectBans(change) {
  Object.assign(bans, { view: bans.view, query: bans.query, rule: bans.rule }, change);
  return turnPage([""]);
}

function turnPage(cursors) {
  bans.cursors = cursors;
  find("#bans .scroll").scrollTop = 0;
  return loadBans();
}

/** Shows a view, from elsewhere on the page. */
function showBans(view, { rule = "", query = "" } = {}) {
  find("#bans-query").value = query;
  find("#bans-rule").value = rule;
  selectBans({ view: view in VIEWS ? view : "all", query, rule });
  goTo("bans");
}

async function loadBans() {
  const newest = ++bans.newestCall;
  const filters = isExemptView() ? { limit: 1 } : { ...selection(), limit: BANS_PER_PAGE, cursor: bans.cursors.at(-1) };
  try {
    const [page, exemptions] = await Promise.all([
      call(`mitigations${queryString(filters)}`),
      isExemptView() ? call("exemptions") : bans.exemptions,
    ]);
    if (newest !== bans.newestCall) return;
    Object.assign(bans, { page, exemptions });
  } catch {
    return;
  }
  drawBans();
}

async function loadExemptions() {
  bans.exemptions = await call("exemptions").catch(() => bans.exemptions);
}

/** Reads again what a change of the bans of rules affects, and shows new bans as soon as the list is not held. */
function bansChanged(...rules) {
  bans.orderedAt = 0;
  loadBans();
  for (const rule of new Set(rules)) if (ruleTable.open.has(rule)) loadRulePanel(rule);
}

// === Drawing ===

function drawBans() {
  const rows = find("#bans tbody");
  const current = JSON.stringify([selection(), bans.cursors]);
  const isSame = current === bans.shownSelection;
  const isDue = bans.rows.length === 0 || (Date.now() - bans.orderedAt > RESORT_MILLIS && !isHeld(rows));
  if (isDue || !isSame) {
    bans.rows = freshRows();
    Object.assign(bans, { shownSelection: current, orderedAt: Date.now() });
  } else {
    bans.rows = updatedRows();
  }
  syncRows(rows, bans.rows, { keyOf: byIndex, build: buildBanRow, update: updateBanRow });
  drawBanHeader();
  drawPages();
  drawCountdowns();
}

/** Returns the rows as the gateway lists them. A ban that was removed here keeps its place for 10 s. */
function freshRows() {
  for (const [id, { at }] of bans.removed) if (at < Date.now() - UNDO_MILLIS) bans.removed.delete(id);
  const rows = listedRows();
  const listed = new Set(rows.map(({ id }) => id));
  for (const [id, { ban, index, view }] of bans.removed) {
    if (view === bans.view && !listed.has(id)) rows.splice(index, 0, { id, ban, isRemoved: true });
  }
  return rows;
}

function listedRows() {
  if (isExemptView()) return matchingExemptions().map((exemption) => ({ id: `exempt ${exemption.ip}`, exemption }));
  return bans.page.items.map((ban) => ({ id: banId(ban), ban }));
}

/** Returns the rows in the order shown, with new figures. A ban that is no longer listed has ended. */
function updatedRows() {
  const listed = new Map(listedRows().map((row) => [row.id, row]));
  return bans.rows.map((row) => {
    const isRemoved = bans.removed.has(row.id);
    return listed.get(row.id) ?? { ...row, isRemoved, hasEnded: !isRemoved };
  });
}

function matchingExemptions() {
  const wanted = bans.query.toLowerCase();
  return bans.exemptions.filter(({ ip, note }) => `${ip} ${note ?? ""}`.toLowerCase().includes(wanted));
}

function drawBanHeader() {
  const { page } = bans;
  const counts = { ...page, exemptions: bans.exemptions.length };
  [...find("#bans-views").children].forEach((button, index) => {
    const view = Object.keys(VIEWS)[index];
    setText(button, `${VIEWS[view]} ${formatNumber(counts[view])}`);
    setAttribute(button, "aria-pressed", view === bans.view);
  });
  const isSelection = !isExemptView() && (bans.query || bans.rule || bans.view !== "all");
  setText(find("#bans-count"), isSelection ? `${formatNumber(page.total)} found` : "");
  const all = find("#bans-all");
  all.hidden = !isSelection || page.total < 2;
  setText(all, `Unban all ${formatNumber(page.total)}`);
  drawBanHint(page.common ?? []);
  const none = find("#bans .none");
  none.hidden = bans.rows.length > 0;
  setText(none, emptyBansText());
}

function emptyBansText() {
  if (isExemptView()) return "No client is exempt. Find a client to exempt it for 1 h.";
  if (!bans.query) return "No active bans.";
  return `No ban matches “${bans.query}”. “Find a client” also finds addresses behind a fingerprint.`;
}

function drawBanHint(common) {
  const [shared] = common.filter(({ rule }) => !bans.rule || rule === bans.rule);
  setTextAndTitle(find("#bans-hint"), VIEW_HINTS[bans.view] ?? (shared ? describeShared(shared) : ""));
}

/** Says which key part most bans of a rule share: often the fingerprint of one tool. */
function describeShared({ rule, field, value, share_ratio: share }) {
  return `${formatShare(share)} of the bans of ${rule} share ${field} ${value}`;
}

function drawPages() {
  const first = (bans.cursors.length - 1) * BANS_PER_PAGE, shown = bans.rows.length;
  const total = isExemptView() ? shown : bans.page.total;
  const last = isExemptView() ? shown : Math.min(total, first + bans.page.items.length);
  const range = `${formatNumber(first + 1)}–${formatNumber(last)} of ${formatNumber(total)}, last to end first`;
  setText(find("#bans-range"), total > 0 ? range : "");
  find("#bans-previous").disabled = bans.cursors.length < 2;
  find("#bans-next").disabled = isExemptView() || !bans.page.next;
}

/** Builds a row for any ban or exemption: rows stay, and bans move through them. */
function buildBanRow() {
  const open = () => openClient(row.item.ban?.key || row.item.exemption?.ip);
  const row = create("tr", {},
    create("td", {}, createButton("", open, { class: "link mono clip" }), create("small")),
    create("td", {}, create("div", { class: "clip" }), create("small")),
    create("td", { class: "number", "data-label": "ends in" }),
    create("td", { class: "number", "data-label": "mitigated" }, create("span"), create("small")),
    create("td", { class: "number" }, createButton("", () => pressBanButton(row), { class: "small" })));
  return row;
}

function updateBanRow(row, item) {
  const { ban, exemption, isRemoved = false, hasEnded = false } = item;
  const [key, rule, , mitigated, action] = row.cells, button = action.firstElementChild;
  row.item = item;
  setAttribute(row, "class", isRemoved || hasEnded ? "gone" : null);
  setTextAndTitle(key.firstElementChild, ban ? ban.key || "all requests" : exemption.ip);
  setTextAndTitle(key.lastElementChild, (ban ? ban.cause : exemption.note) ?? "");
  setTextAndTitle(rule.firstElementChild, ban?.rule ?? "every rule");
  setTextAndTitle(rule.lastElementChild, ban ? describeBan(ban) : "exempt");
  setText(mitigated.firstElementChild, ban ? formatNumber(ban.mitigated) : "–");
  setText(button, isRemoved ? "Undo" : ban ? "Unban" : "Remove");
  setAttribute(button, "aria-label", `${button.textContent} ${ban ? `${ban.key}, ${ban.rule}` : exemption.ip}`);
  // A disabled button would lose the focus.
  setAttribute(button, "aria-disabled", hasEnded || null);
}

function describeBan({ action, dry_run: isDryRun, offence, by, scope }) {
  const parts = [isDryRun ? `would ${action}` : action, `offence ${offence}`];
  if (by === "manual") parts.push("by hand");
  if (scope === "node" && state.status?.store.kind === "redis") parts.push("this node only");
  return parts.join(", ");
}

/** Updates the times of all rows. Called once a second. */
function drawCountdowns() {
  for (const row of find("#bans tbody").rows) {
    const { ban, exemption, isRemoved, hasEnded } = row.item;
    const { until, last_seen: lastSeen } = ban ?? exemption;
    setText(row.cells[2], isRemoved ? "unbanned" : hasEnded ? "ended" : formatRemaining(until));
    setText(row.cells[3].lastElementChild, lastSeen ? `${formatAge(lastSeen)} ago` : "");
  }
}

// === Changes ===

function pressBanButton(row) {
  const { id, ban, exemption, hasEnded } = row.item;
  const removed = bans.removed.get(id);
  if (hasEnded) return;
  if (removed) restoreBan(removed.ban);
  else if (ban) unbanInPlace(ban, row.sectionRowIndex);
  else endExemption(exemption);
}

/** Unbans a key. Its row stays for 10 s with Undo, so that a second click cannot hit the next row. */
async function unbanInPlace(ban, index) {
  const removed = await attempt("Unban", removeBan(ban.rule, ban));
  if (removed) {
    bans.removed.set(banId(ban), { ban: removed, index, view: bans.view, at: Date.now() });
    offerUndo(() => restoreBan(removed));
    const note = scopeNote(removed);
    if (note) showToast(`${ban.key} is unbanned${note}.`);
  }
  bansChanged(ban.rule);
}

/** Removes a ban and returns it as the gateway does, so that it can be restored. */
function removeBan(rule, { id, key }) {
  const identity = id ? { rule, id } : { rule, key };
  return call(`mitigations?${new URLSearchParams(identity)}`, { method: "DELETE" });
}

/** Restores a removed ban as it was. */
async function restoreBan(ban) {
  const restored = await attempt("Undo", call("mitigations", { method: "POST", body: ban }));
  if (restored) bans.removed.delete(banId(ban));
  bansChanged(ban.rule);
}

async function removeSelectedBans() {
  const { total } = bans.page, filters = selection();
  const text = "All bans that this list selects end immediately. This cannot be undone.";
  if (!await confirmAction(`Unban ${plural(total, "key")}?`, text, `Unban ${formatNumber(total)}`)) return;
  const result = await attempt("Unban", call(`mitigations${queryString(filters)}`, { method: "DELETE" }));
  if (result) showToast(`${plural(result.removed, "key")} unbanned${scopeNote(result)}.`);
  bansChanged(filters.rule);
}

async function endExemption({ ip, until, note }) {
  const removed = await attempt("Removal", removeExemption(ip));
  const seconds = Math.round((toMillis(until) - gatewayNow()) / 1000);
  const restore = () => attempt("Undo", addExemption(ip, `${seconds}s`, note)).then(() => bansChanged());
  if (removed) showToast(`${ip} is no longer exempt${scopeNote(removed)}.`, seconds > 0 ? restore : undefined);
  await loadExemptions();
  bansChanged();
}

function removeExemption(ip) {
  return call(`exemptions?${new URLSearchParams({ ip })}`, { method: "DELETE" });
}

function addExemption(ip, duration, note) {
  return call("exemptions", { method: "POST", body: note ? { ip, duration, note } : { ip, duration } });
}
