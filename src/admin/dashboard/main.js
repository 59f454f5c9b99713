// Starts the page: reads everything once, opens the stream, and follows keys and timers.

const POLL_MILLIS = 5_000;
const HISTORY_SECONDS = 900;
const THEMES = ["auto", "light", "dark"];
const THEME_KEY = "lockgate-theme";

async function loadAll() {
  const paths = ["status", "rules", `history?seconds=${HISTORY_SECONDS}`];
  const [status, rules, history] = await Promise.all(paths.map((path) => call(path)));
  clockSkew = toMillis(status.now) - Date.now();
  setStatus(status);
  setRules(rules);
  state.history = new History(history);
  drawChoices();
  requestDraw(true);
  await loadExemptions();
  loadBans();
  loadUpstreams();
  for (const name of ruleTable.open) loadRulePanel(name);
}

const loadStatus = oneAtATime(async () => {
  const before = state.status?.config.loaded_at;
  try {
    setStatus(await call("status"));
  } catch {
    // The stream shows that the gateway is lost.
    return;
  }
  requestDraw();
  // A reload while the stream was lost has no marker.
  if (before && before !== state.status.config.loaded_at) loadAll().catch(() => {});
});

function setStatus(status) {
  state.status = status;
  state.startedAt = toMillis(status.now) - 1000 * status.uptime_s;
  document.documentElement.dataset.store = status.store.kind;
  const running = status.state === "running" ? `up ${formatDuration(status.uptime_s)}` : status.state;
  setText(find("#instance"), `${status.instance}, ${status.version}, ${running}`);
  setText(find("#config-file"), status.config.file);
}

/** Lists the loaded rules and their actions in the filters. */
function drawChoices() {
  const names = state.rules.map(({ name }) => [name, name]);
  setOptions(find("#filter-rule"), names, 1);
  setOptions(find("#bans-rule"), names, 1);
  const actions = [...new Set([...state.rules.map(({ action }) => action), "forward", "own"])];
  setOptions(find("#filter-action"), actions.map((action) => [action, participle(action)]), 2);
  const form = find("#explain-form");
  if (!form.url.value) form.url.value = `https://${state.status.certificates[0]?.name ?? "localhost"}/`;
}

/** Reads what the stream does not carry. A hidden tab asks for nothing. */
function poll() {
  if (document.hidden || pageState() !== "live") return;
  loadStatus();
  loadUpstreams();
  loadBans();
  for (const name of ruleTable.open) loadRulePanel(name);
}

function drawEverySecond() {
  drawConnection();
  if (document.hidden) return;
  if (state.status) setText(find("#clock"), `${formatClock(gatewayNow())} UTC`);
  drawCountdowns();
}

// === Theme ===

function setTheme(theme) {
  localStorage.setItem(THEME_KEY, theme);
  const { dataset } = document.documentElement;
  if (theme === "auto") delete dataset.theme;
  else dataset.theme = theme;
  setText(find("#theme"), `Theme: ${theme}`);
}

function setUpTheme() {
  const saved = () => Math.max(0, THEMES.indexOf(localStorage.getItem(THEME_KEY)));
  setTheme(THEMES[saved()]);
  find("#theme").onclick = () => setTheme(THEMES[(saved() + 1) % THEMES.length]);
}

// === Keys ===

const SHORTCUTS = {
  "/": () => find("#find-query").focus(),
  b: () => {
    goTo("bans");
    find("#bans-query").focus({ preventScroll: true });
  },
  r: () => goTo("rules"),
  e: () => {
    goTo("explain");
    find("#explain-form").url.focus({ preventScroll: true });
  },
  p: togglePause,
  z: undoNewest,
};

/** Shortcuts are off while the user types and while a dialog is open. */
function followKeys() {
  document.addEventListener("keydown", (event) => {
    const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
    const isTyping = event.target.closest("input, select, textarea, dialog") || find("dialog[open]");
    if (hasModifier || isTyping || !Object.hasOwn(SHORTCUTS, event.key)) return;
    event.preventDefault();
    SHORTCUTS[event.key]();
  });
}

function start() {
  setUpTheme();
  setUpStrip();
  setUpChart();
  setUpRules();
  setUpBans();
  setUpDecisions();
  setUpFind();
  setUpExplain();
  followKeys();
  followVisibility();
  for (const button of document.querySelectorAll("button.reload")) button.onclick = reloadConfiguration;
  find("#banner button").onclick = () => {
    stream.backoffMillis = 1_000;
    reconnect();
  };
  setInterval(drawEverySecond, 1_000);
  setInterval(poll, POLL_MILLIS);
  reconnect();
}

start();
