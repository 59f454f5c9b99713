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
  const known = [...FORM_FIELDS, "headers"];
  explain.more = Object.fromEntries(Object.entries(sample).filter(([name, value]) => value != null && !known.includes(name)));
  drawMore();
  goTo("explain");
  if (form.reportValidity()) runExplain();
}

/** Lists the parts of the request that have no input, so that nothing is hidden. */
function drawMore() {
  const line = find("#explain-more"), entries = Object.entries(explain.more);
  line.hidden = entries.length === 0;
  const text = entries.map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ");
  const forget = () => {
    explain.more = {};
    drawMore();
    find("#explain-form .primary").focus();
  };
  line.replaceChildren(create("span", {}, `Also: ${text} `), create("button", { type: "button", class: "link", onclick: forget }, "leave out"));
}

function explainRequest() {
  const form = find("#explain-form");
  const lines = form.headers.value.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]);
  const headers = Object.fromEntries(lines.map(([name, value]) => [name.trim().toLowerCase(), value.trim()]).filter(([name]) => name));
  const body = { ...explain.more, method: form.method.value, url: form.url.value.trim(), headers };
  if (form.ip.value.trim()) body.ip = form.ip.value.trim();
  if (form.ja4.value.trim()) body.ja4 = form.ja4.value.trim();
  if (form.status.value) body.status = Number(form.status.value);
  return body;
}

async function runExplain() {
  const output = find("#explanation"), newest = ++explain.newestCall;
  let content;
  try {
    content = explanation(await call("explain", { method: "POST", body: explainRequest() }));
  } catch (error) {
    content = [create("p", { class: "none error" }, `${error.message}.`)];
  }
  if (newest === explain.newestCall) output.replaceChildren(...content);
}

function explanation(result) {
  const table = create("table", { class: "why", "aria-label": "What every rule does with the request" },
    create("thead", {}, create("tr", {}, ["Rule", "Result", "Why"].map((text) => create("th", {}, text)))),
    create("tbody", {}, result.rules.map(explainedRule)));
  const load = describeLoad(result);
  return [
    create("p", { class: "verdict" }, actionChip(result.decision), create("span", {}, outcome(result)), load && create("small", {}, load)),
    table,
  ];
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
    const classLimit = isNumber(admission.class_limit) ? `, this class may take ${formatNumber(admission.class_limit)}` : "";
    parts.push(`Upstream ${admission.upstream}: ${formatNumber(admission.in_flight)}${slots} in flight${classLimit}`);
  }
  return parts.join(". ");
}

function explainedRule({ name, verdict, why, value, limit, key }) {
  const action = verdict.replace(/^would_/, "");
  const isActing = action in GLYPHS;
  const used = limit && value != null ? `${formatNumber(value)} of ${formatNumber(limit)}` : "";
  return create("tr", { class: isActing ? null : "idle" },
    create("td", { class: "clip", title: name }, name),
    create("td", {}, isActing ? actionChip(action, action !== verdict) : verdict.replaceAll("_", " ")),
    create("td", {}, create("span", {}, why), (used || key) && create("small", {}, [used, key && `key ${key}`].filter(Boolean).join(", "))));
}
