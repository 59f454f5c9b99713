// The last 15 minutes, in arrays of fixed length: an open page needs the same memory after a day as after a minute.

const STEPS = 180;
const MAX_MARKERS = 60;

class History {
  /** Reads the response of `/api/history`. */
  constructor(data) {
    this.stepMillis = data.step_ms;
    this.markers = data.markers.slice(-MAX_MARKERS);
    this.layers = Object.fromEntries(LAYER_NAMES.map((layer) => [layer, new Float32Array(STEPS)]));
    let length = STEPS;
    for (const [action, values] of Object.entries(data.actions_per_s)) {
      length = values.length;
      const layer = this.layers[layerOf(action)];
      alignRight(values).forEach((value, step) => { layer[step] += value; });
    }
    this.rules = new Map();
    for (const [name, { matched_per_s: matched, mitigated_per_s: mitigated }] of Object.entries(data.rules)) {
      this.rules.set(name, { matched: alignRight(matched), mitigated: alignRight(mitigated) });
    }
    this.lastStart = toMillis(data.start) + (length - 1) * this.stepMillis;
    this.ticksInStep = Math.max(1, Math.round((gatewayNow() - this.lastStart) / 1000));
  }

  get firstStart() {
    return this.lastStart - (STEPS - 1) * this.stepMillis;
  }

  /** Adds a tick. Returns whether a new step began. */
  add(tick, layerRates) {
    const elapsed = Math.floor((toMillis(tick.ts) - this.lastStart) / this.stepMillis);
    if (elapsed > 0) this.shift(elapsed);
    this.ticksInStep += 1;
    for (const layer of LAYER_NAMES) this.average(this.layers[layer], layerRates[layer]);
    for (const [name, figures] of Object.entries(tick.rules)) {
      const series = this.rules.get(name);
      if (!series) continue;
      this.average(series.matched, figures.matched_per_s);
      this.average(series.mitigated, figures.mitigated_per_s + figures.would_mitigate_per_s);
    }
    return elapsed > 0;
  }

  shift(steps) {
    const count = Math.min(steps, STEPS);
    const ofRules = [...this.rules.values()].flatMap((series) => [series.matched, series.mitigated]);
    for (const values of [...Object.values(this.layers), ...ofRules]) {
      values.copyWithin(0, count);
      values.fill(0, STEPS - count);
    }
    this.lastStart += steps * this.stepMillis;
    this.ticksInStep = 0;
  }

  average(values, newest) {
    values[STEPS - 1] += ((newest ?? 0) - values[STEPS - 1]) / this.ticksInStep;
  }

  addMarker(marker) {
    this.markers.push(marker);
    if (this.markers.length > MAX_MARKERS) this.markers.shift();
  }

  /** Returns the decisions per second of a step, all layers together. */
  total(step) {
    return LAYER_NAMES.reduce((sum, layer) => sum + this.layers[layer][step], 0);
  }

  /** Returns the markers within two steps of a step, the newest three. */
  markersNear(step) {
    const time = this.firstStart + step * this.stepMillis;
    const isNear = (marker) => Math.abs(toMillis(marker.ts) - time) < 2 * this.stepMillis;
    return this.markers.filter(isNear).slice(-3);
  }
}

/** Returns the newest 180 values, with zeros before them if there are fewer. */
function alignRight(values) {
  const aligned = new Float32Array(STEPS);
  const newest = values.slice(-STEPS);
  aligned.set(newest, STEPS - newest.length);
  return aligned;
}
