// What the page knows, and how a tick changes it.

/** Share of the newest tick in a smoothed figure: about 3 s, so that digits stay readable. */
const SMOOTHING = 0.3;

const state = {
  status: null,
  /** The rules in file order, with smoothed rates: `matchedRate`, `mitigatedRate`, `wouldRate`. */
  rules: [],
  history: null,
  /** The smoothed rate of each layer. */
  rates: {},
  latency: { p50: null, p99: null },
  connections: null,
  /** When the gateway started, by its own clock. `NaN` before the first status. */
  startedAt: NaN,
  /** When the newest tick arrived, by this browser's clock. 0 before the first one. */
  lastTickAt: 0,
};

function setPageState(name) {
  document.documentElement.dataset.state = name;
}
const pageState = () => document.documentElement.dataset.state;

function smooth(old, newest) {
  if (!isNumber(newest)) return null;
  return isNumber(old) ? old + (newest - old) * SMOOTHING : newest;
}

function applyTick(tick) {
  state.lastTickAt = Date.now();
  clockSkew = toMillis(tick.ts) - state.lastTickAt;
  setPageState("live");
  const rates = Object.fromEntries(LAYER_NAMES.map((layer) => [layer, 0]));
  for (const [action, rate] of Object.entries(tick.actions_per_s)) rates[layerOf(action)] += rate;
  for (const layer of LAYER_NAMES) state.rates[layer] = smooth(state.rates[layer], rates[layer]);
  state.latency.p50 = smooth(state.latency.p50, tick.latency_ms?.p50);
  state.latency.p99 = smooth(state.latency.p99, tick.latency_ms?.p99);
  state.connections = tick.connections;
  for (const rule of state.rules) applyRuleTick(rule, tick.rules[rule.name], tick.ts);
  const isNewStep = state.history?.add(tick, rates) ?? false;
  requestDraw(isNewStep);
}

function applyRuleTick(rule, figures, time) {
  if (!figures) return;
  rule.matchedRate = smooth(rule.matchedRate, figures.matched_per_s);
  rule.mitigatedRate = smooth(rule.mitigatedRate, figures.mitigated_per_s);
  rule.wouldRate = smooth(rule.wouldRate, figures.would_mitigate_per_s);
  rule.stricterRate = smooth(rule.stricterRate, figures.candidate?.stricter_per_s);
  rule.laxerRate = smooth(rule.laxerRate, figures.candidate?.laxer_per_s);
  rule.keys = figures.keys;
  rule.bans = figures.bans;
  if (figures.matched_per_s > 0) rule.last_matched = time;
}

/** Takes over the rules that the gateway lists, and keeps the smoothed rates of those that stay. */
function setRules(rules) {
  const old = new Map(state.rules.map((rule) => [rule.name, rule]));
  const kept = ["matchedRate", "mitigatedRate", "wouldRate", "stricterRate", "laxerRate"];
  state.rules = rules.map((rule) => {
    const before = old.get(rule.name);
    return before ? { ...rule, ...Object.fromEntries(kept.map((name) => [name, before[name]])) } : rule;
  });
}

let drawRequested = false;
let stepChanged = true;

/** Draws the page in the next frame. Nothing is drawn while the tab is hidden. */
function requestDraw(isNewStep = false) {
  stepChanged ||= isNewStep;
  if (drawRequested || document.hidden) return;
  drawRequested = true;
  requestAnimationFrame(() => {
    drawRequested = false;
    drawStrip();
    drawChart();
    drawLegend();
    drawAttention();
    drawRules();
    drawDecisions();
    if (stepChanged) drawSparklines();
    stepChanged = false;
  });
}
