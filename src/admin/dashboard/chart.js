// The chart: decisions per second over 15 minutes, stacked, with markers.

const MARGIN = { left: 46, right: 12, top: 22, bottom: 20 };
/** The width of a letter in the chart, on average and rounded up. */
const LETTER_WIDTH = 6.6;
/** How many draws the axis waits before it shrinks. */
const SHRINK_AFTER = 20;
/** How many steps each key moves the cursor: Page Up and Page Down by a minute. */
const CURSOR_MOVES = {
  ArrowLeft: -1,
  ArrowDown: -1,
  ArrowRight: 1,
  ArrowUp: 1,
  PageUp: -12,
  PageDown: 12,
  Home: -STEPS,
  End: STEPS,
};

const chart = {
  hiddenLayers: new Set(),
  /** The step under the pointer or the keyboard cursor. `null` if there is none. */
  cursor: null,
  axis: { max: 0, step: 0, draws: 0 },
  /** The parts of the drawing, made once. */
  parts: null,
};

function setUpChart() {
  find("#legend").append(...LAYER_NAMES.map(legendButton));
  const group = (name) => create("g", { class: name });
  chart.parts = {
    unknown: group("unknown"),
    grid: group("grid"),
    areas: LAYER_NAMES.map((layer) => create("path", { class: `area ${layer}` })),
    times: group("times"),
    markers: group("markers"),
    cursor: create("line", { class: "cursor" }),
  };
  const { unknown, grid, areas, times, markers, cursor } = chart.parts;
  find("#chart svg").append(unknown, grid, ...areas, times, markers, cursor);
  const box = find("#chart");
  const follow = (event) => moveCursor(stepAt(event.clientX));
  box.onpointermove = follow;
  box.onpointerdown = follow;
  box.onpointerleave = box.onblur = () => moveCursor(null);
  box.onkeydown = moveCursorByKey;
  new ResizeObserver(drawChart).observe(box);
}

function legendButton(layer) {
  const button = createButton("", () => toggleLayer(layer, button), { "aria-pressed": "true" });
  const swatch = create("i", { class: `swatch ${layer}`, "aria-hidden": "true" });
  button.append(swatch, `${LAYERS[layer]} `, create("b", {}, "–"));
  return button;
}

function toggleLayer(layer, button) {
  if (!chart.hiddenLayers.delete(layer)) chart.hiddenLayers.add(layer);
  setAttribute(button, "aria-pressed", !chart.hiddenLayers.has(layer));
  chart.axis.max = 0;
  drawChart();
}

function drawLegend() {
  const buttons = find("#legend").children;
  LAYER_NAMES.forEach((layer, index) => setText(find("b", buttons[index]), formatRate(state.rates[layer])));
}

// === Cursor ===

function moveCursor(step) {
  chart.cursor = step === null ? null : Math.min(STEPS - 1, Math.max(0, step));
  drawChart();
}

function stepAt(clientX) {
  const { left, width } = find("#chart").getBoundingClientRect();
  const share = (clientX - left - MARGIN.left) / (width - MARGIN.left - MARGIN.right);
  return Math.round(share * (STEPS - 1));
}

function moveCursorByKey(event) {
  if (event.key === "Escape") moveCursor(null);
  if (!Object.hasOwn(CURSOR_MOVES, event.key)) return;
  event.preventDefault();
  moveCursor((chart.cursor ?? STEPS - 1) + CURSOR_MOVES[event.key]);
}

// === Drawing ===

function drawChart() {
  const box = find("#chart"), width = box.clientWidth, height = box.clientHeight;
  if (!state.history || !width) return;
  fitAxis();
  const plot = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  const scale = {
    ...plot,
    x: (step) => MARGIN.left + (plot.width * step) / (STEPS - 1),
    y: (value) => MARGIN.top + plot.height * (1 - value / chart.axis.max),
    bottom: MARGIN.top + plot.height,
    right: width - MARGIN.right,
  };
  drawUnknown(scale);
  drawGrid(scale);
  drawAreas(scale);
  drawTimes(scale, height);
  drawMarkers(scale);
  drawCursor(scale, width);
}

const shownLayers = () => LAYER_NAMES.filter((layer) => !chart.hiddenLayers.has(layer));

/** Fits the axis to the highest value. It grows immediately and shrinks late, so that it does not flicker. */
function fitAxis() {
  const { axis } = chart;
  let peak = 4;
  for (let step = 0; step < STEPS; step += 1) {
    peak = Math.max(peak, shownLayers().reduce((sum, layer) => sum + state.history.layers[layer][step], 0));
  }
  const wanted = niceAxis(peak * 1.04);
  axis.draws = wanted.max < axis.max ? axis.draws + 1 : 0;
  if (wanted.max > axis.max || axis.draws > SHRINK_AFTER) Object.assign(axis, wanted, { draws: 0 });
}

/** Returns an axis of at most five round steps that reaches `peak`. */
function niceAxis(peak) {
  const power = 10 ** Math.floor(Math.log10(peak / 5));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size * 5 >= peak);
  return { step, max: step * Math.ceil(peak / step) };
}

/** Marks the time before the gateway started: nothing is known of it, which differs from no requests. */
function drawUnknown(scale) {
  const step = (state.startedAt - state.history.firstStart) / state.history.stepMillis;
  if (!(step > 0)) {
    chart.parts.unknown.replaceChildren();
    return;
  }
  const end = scale.x(Math.min(step, STEPS - 1)), middle = (MARGIN.left + end) / 2;
  const area = create("path", { d: `M${MARGIN.left} ${MARGIN.top}H${end}V${scale.bottom}H${MARGIN.left}Z` });
  const text = `Started at ${formatClock(state.startedAt)}`;
  const label = create("text", { x: middle, y: scale.bottom - 9, "text-anchor": "middle" }, text);
  chart.parts.unknown.replaceChildren(area, ...(end - MARGIN.left > text.length * LETTER_WIDTH ? [label] : []));
}

function drawGrid(scale) {
  const lines = [];
  for (let value = 0; value <= chart.axis.max; value += chart.axis.step) {
    const y = scale.y(value);
    lines.push(create("line", { x1: MARGIN.left, x2: scale.right, y1: y, y2: y }));
    lines.push(create("text", { x: MARGIN.left - 7, y: y + 4, "text-anchor": "end" }, formatNumber(value)));
  }
  chart.parts.grid.replaceChildren(...lines);
}

/** Draws each layer on top of the ones below it. */
function drawAreas(scale) {
  const floor = new Float32Array(STEPS);
  LAYER_NAMES.forEach((layer, index) => {
    const area = chart.parts.areas[index];
    if (chart.hiddenLayers.has(layer)) {
      setAttribute(area, "d", "");
      return;
    }
    const upper = [], lower = [];
    const values = state.history.layers[layer];
    for (let step = 0; step < STEPS; step += 1) {
      const x = scale.x(step).toFixed(1);
      lower.push(`${x} ${scale.y(floor[step]).toFixed(1)}`);
      floor[step] += values[step];
      upper.push(`${x} ${scale.y(floor[step]).toFixed(1)}`);
    }
    setAttribute(area, "d", `M${upper.join("L")}L${lower.reverse().join("L")}Z`);
  });
}

function drawTimes(scale, height) {
  const { history } = state;
  const interval = scale.width < 420 ? 5 * 60_000 : 3 * 60_000;
  const labels = [];
  const end = history.lastStart;
  for (let time = Math.ceil(history.firstStart / interval) * interval; time <= end; time += interval) {
    const x = scale.x((time - history.firstStart) / history.stepMillis);
    if (x < MARGIN.left + 14 || x > scale.right - 14) continue;
    labels.push(create("text", { x, y: height - 5, "text-anchor": "middle" }, formatClock(time).slice(0, 5)));
  }
  chart.parts.times.replaceChildren(...labels);
}

/** Draws a line per marker, and its label where it covers no other. Further bans of a rule are only ticks. */
function drawMarkers(scale) {
  const { history } = state;
  const marks = [], shownBans = new Set();
  let free = MARGIN.left;
  for (const { ts, kind, bad: isBad, label } of history.markers) {
    const step = (toMillis(ts) - history.firstStart) / history.stepMillis;
    if (step < 0) continue;
    const x = scale.x(Math.min(step, STEPS - 1));
    const bad = isBad ? "bad" : null;
    const isRepeated = kind === "ban" && shownBans.has(label);
    shownBans.add(label);
    if (!isRepeated) marks.push(create("line", { class: bad, x1: x, x2: x, y1: MARGIN.top - 4, y2: scale.bottom }));
    const width = label.length * LETTER_WIDTH + 10;
    const isAfter = x >= free && x + width < scale.right;
    const isBefore = x - width >= free && x + width >= scale.right;
    if (scale.width > 420 && !isRepeated && (isAfter || isBefore)) {
      const place = isAfter ? { x: x + 4 } : { x: x - 4, "text-anchor": "end" };
      marks.push(create("text", { class: bad, y: MARGIN.top - 8, ...place }, label));
      free = isAfter ? x + width : x;
    } else {
      marks.push(create("path", { class: bad, d: `M${x - 3.5} ${MARGIN.top - 4}h7l-3.5 6z` }));
    }
  }
  chart.parts.markers.replaceChildren(...marks);
}

function drawCursor(scale, width) {
  const box = find("#chart"), tip = find(".tip", box), step = chart.cursor;
  const isShown = step !== null;
  chart.parts.cursor.style.display = isShown ? "" : "none";
  tip.hidden = !isShown;
  setAttribute(box, "aria-valuenow", step ?? STEPS - 1);
  setAttribute(box, "aria-valuetext", describeStep(step ?? STEPS - 1));
  if (!isShown) return;
  const x = scale.x(step);
  for (const [name, value] of Object.entries({ x1: x, x2: x, y1: MARGIN.top, y2: scale.bottom })) {
    setAttribute(chart.parts.cursor, name, value);
  }
  tip.replaceChildren(...tipRows(step));
  tip.style.left = `${x > width * 0.6 ? x - tip.offsetWidth - 10 : x + 10}px`;
}

const stepTime = (step) => formatClock(state.history.firstStart + step * state.history.stepMillis);

function tipRows(step) {
  const { history } = state;
  const layerRow = (layer) => create("div", {},
    create("span", {}, create("i", { class: `swatch ${layer}` }), LAYERS[layer]),
    create("span", {}, formatRate(history.layers[layer][step])));
  return [
    create("div", {}, create("b", {}, stepTime(step)), create("b", {}, `${formatNumber(history.total(step))} /s`)),
    ...LAYER_NAMES.toReversed().map(layerRow),
    ...history.markersNear(step).map(({ label, text }) => create("p", {}, `${label}: ${text}`)),
  ];
}

/** Returns a step as a sentence, for assistive technology. */
function describeStep(step) {
  const { history } = state;
  const parts = LAYER_NAMES.map((layer) => `${formatRate(history.layers[layer][step])} ${LAYERS[layer].toLowerCase()}`);
  const markers = history.markersNear(step).map(({ label }) => `, ${label}`).join("");
  return `${stepTime(step)}: ${formatNumber(history.total(step))} per second, ${parts.join(", ")}${markers}`;
}

// === Sparklines of the rules ===

const SPARK = { width: 156, height: 30, points: 60 };

function buildSparkline() {
  const viewBox = `0 0 ${SPARK.width} ${SPARK.height}`;
  return create("svg", { class: "spark", viewBox, preserveAspectRatio: "none", "aria-hidden": "true" },
    create("path", { class: "matched" }), create("path"));
}

function drawSparklines() {
  for (const rule of state.rules) {
    const svg = ruleRow(rule.name)?.querySelector(".spark"), series = state.history?.rules.get(rule.name);
    if (!svg || !series) continue;
    drawSparkline(svg, series);
  }
}

/** Draws what a rule matched and mitigated. Both have the scale of what it matched. */
function drawSparkline(svg, { matched, mitigated }) {
  const max = Math.max(1, ...matched);
  setAttribute(svg.children[0], "d", sparkline(matched, max));
  setAttribute(svg.children[1], "d", sparkline(mitigated, max));
}

/** Returns the classes of what a rule mitigated. A dry run is dashed. */
const mitigatedClass = ({ action, dry_run: isDryRun }) => `mitigated ${action}${isDryRun ? " dry" : ""}`;

/** Returns the outline of a series, three steps per point. */
function sparkline(values, max) {
  const size = STEPS / SPARK.points, points = [];
  for (let point = 0; point < SPARK.points; point += 1) {
    let sum = 0;
    for (let step = point * size; step < (point + 1) * size; step += 1) sum += values[step];
    const x = (point * SPARK.width) / (SPARK.points - 1);
    const y = SPARK.height - Math.min(1, sum / size / max) * (SPARK.height - 1);
    points.push(`${x.toFixed(1)} ${y.toFixed(1)}`);
  }
  return `M0 ${SPARK.height}L${points.join("L")}V${SPARK.height}Z`;
}
