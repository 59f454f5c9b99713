// Explains a request against live counters. Any key or decision on the page can fill in the form.

/** The parts of an `explain` request that have an input. */
const FORM_FIELDS = ["method", "url", "ip", "ja4", "status"];

const explain = {
  /** The other parts of the request that filled in the form: `asn`, `keys`, … */
  more: {},
  newestCall: 0,
};

function setUpExplain() {
  find("#explain-form").onsubmit = (event) => {
    event.preventDefault();
    runExplain();
  };
}

/** Fills in the form with a request as the API takes it, and explains it. */
function fillExplain(sample) {
  const form = find("#explain-form");
  for (const name of FORM_FIELDS) if (sample[name] != null) form[name].value = sample[name];
  if (form.method.selectedIndex < 0) form.method.selectedIndex = 0;
  for (const name of ["ja4", "status"]) if (sample[name] == null) form[name].value = "";
  form.headers.value = Object.entries(sample.headers ?? {}).map(([name, value]) => `${name}: ${value}`).join("\n");
  const isMore = ([name, value]) => value != null && name !== "headers" && !FORM_FIELDS.includes(name);
  explain.more = Object.fromEntries(Object.entries(sample).filter(isMore));
  drawMore();
  goTo("explain");
  if (form.reportValidity()) runExplain();
}

/** Lists the parts of the request that have no input, so that nothing is hidden. */
function drawMore() {
  const line = find("#explain-more"), entries = Object.entries(explain.more);
  line.hidden = entries.length === 0;
  const write = (value) => (typeof value === "object" ? JSON.stringify(value) : value);
  const text = entries.map(([name, value]) => `${name} ${write(value)}`).join(", ");
  const forget = () => {
    explain.more = {};
    drawMore();
    find("#explain-form .primary").focus();
  };
  line.replaceChildren(create("span", {}, `Also: ${text} `), createButton("leave out", forget, { class: "link" }));
}

function explainRequest() {
  const form = find("#explain-form");
  const headers = parseHeaders(form.headers.value);
  const body = { ...explain.more, method: form.method.value, url: form.url.value.trim(), headers };
  if (form.ip.value.trim()) body.ip = form.ip.value.trim();
  if (form.ja4.value.trim()) body.ja4 = form.ja4.value.trim();
  if (form.status.value) body.status = Number(form.status.value);
  return body;
}

/** Reads "name: value" lines. Lines without a name are left out. */
function parseHeaders(text) {
  const headers = {};
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) headers[line.slice(0, colon).trim().toLowerCase()] = line.slice(colon + 1).trim();
  }
  return headers;
}

async function runExplain() {
  const output = find("#explanation"), newest = ++explain.newestCall;
  let content;
  try {
    content = explanation(await call("explain", { method: "POST", body: explainRequest() }));
  } catch (error) {
    content = [create("p", { class: "none error" }, toSentence(error.message))];
  }
  if (newest === explain.newestCall) output.replaceChildren(...content);
}

function explanation(result) {
  const table = create("table", { class: "why", "aria-label": "What every rule does with the request" },
    createHeading(["Rule", "Result", "Why"]),
    create("tbody", {}, result.rules.map(explainedRule)));
  const load = describeLoad(result);
  const parts = [actionChip(result.decision), create("span", {}, outcome(result)), load && create("small", {}, load)];
  return [create("p", { class: "verdict" }, parts), table];
}

/** Says in one sentence what the client gets. */
function outcome({ decision, rule, response }) {
  const cause = rule ? `by ${rule}` : decision === "own" ? "by the gateway itself" : "no rule mitigates it";
  return response ? `${cause}; the client receives ${response.status}` : cause;
}

/** Says which class the request has, and how busy its upstream is. */
function describeLoad({ class: priority, admission }) {
  const parts = priority ? [`Class ${priority}`] : [];
  if (admission?.upstream) {
    const slots = isNumber(admission.limit) ? ` of ${formatNumber(admission.limit)} slots` : "";
    parts.push(`Upstream ${admission.upstream}: ${formatNumber(admission.in_flight)}${slots} in flight`);
    if (isNumber(admission.class_limit)) parts.push(`This class may take ${formatNumber(admission.class_limit)}`);
  }
  return parts.join(". ");
}

function explainedRule({ name, verdict, why, value, limit, key }) {
  const action = verdict.replace(/^would_/, "");
  const isActing = action in GLYPHS;
  const used = limit && value != null && `${formatNumber(value)} of ${formatNumber(limit)}`;
  const details = [used, key && `key ${key}`].filter(Boolean).join(", ");
  return create("tr", { class: isActing ? null : "idle" },
    create("td", { class: "clip", title: name }, name),
    create("td", {}, isActing ? actionChip(action, action !== verdict) : verdict.replaceAll("_", " ")),
    create("td", {}, create("span", {}, why), details && create("small", {}, details)));
}
