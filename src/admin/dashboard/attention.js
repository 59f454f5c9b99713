// "Needs attention": entries that the gateway writes, so that this page, `lockgate top` and `lockgate status` agree.

const LEVELS = {
  crit: { glyph: "▲", name: "critical" },
  warn: { glyph: "◆", name: "warning" },
  note: { glyph: "○", name: "note" },
  ok: { glyph: "✓", name: "" },
};
const ALL_CLEAR = {
  id: "",
  level: "ok",
  text: "Nothing",
  detail: "Traffic, store, configuration and upstreams are in order.",
  since: null,
  link: null,
};

/** What opens the target of an entry's link, by the part before the colon. */
const LINK_OPENERS = {
  rule: openRule,
  bans: showBans,
  config: showConfiguration,
  section: (id) => { if (document.getElementById(id)?.matches("section")) goTo(id); },
};

function drawAttention() {
  const entries = state.status?.attention;
  if (!entries) return;
  const critical = entries.filter(({ level }) => level === "crit").length;
  setText(find("#attention-count"), entries.length ? String(entries.length) : "");
  document.title = `${critical ? `▲ ${critical} · ` : ""}${state.status.instance} · lockgate`;
  syncRows(find("#attention"), entries.length ? entries : [ALL_CLEAR], {
    keyOf: ({ id, link }) => `${id} ${link}`,
    build: buildAttention,
    update: updateAttention,
  });
}

function buildAttention({ link }) {
  const [kind, target] = splitLink(link);
  const open = LINK_OPENERS[kind];
  const title = open ? createButton("", () => open(target), { class: "link" }) : create("b");
  return create("li", {},
    create("span", { class: "glyph", "aria-hidden": "true" }),
    create("div", {}, create("span", { class: "hidden" }), title),
    create("time"),
    create("p"));
}

function updateAttention(row, { level, text, detail, since }) {
  const { glyph, name } = LEVELS[level] ?? LEVELS.note;
  const [sign, heading, age, sentence] = row.children;
  setAttribute(row, "class", level);
  setText(sign, glyph);
  setText(heading.firstElementChild, name ? `${name}: ` : "");
  setText(heading.lastElementChild, text);
  setText(age, since ? formatAge(since) : "");
  setAttribute(age, "title", since ? `since ${formatTime(since)}` : null);
  setText(sentence, detail ?? "");
}

/** Splits "rule:NAME" at the first colon: names can contain more. */
function splitLink(link) {
  const colon = link?.indexOf(":") ?? -1;
  return colon < 0 ? [] : [link.slice(0, colon), link.slice(colon + 1)];
}

// === Configuration ===

/** Shows which configuration is in effect, and every error of a refused reload with the marked span. */
function showConfiguration() {
  if (!state.status) return;
  const { file, loaded_at: loadedAt, last_reload: reload, rules } = state.status.config;
  const isRefused = reload && !reload.ok;
  const inEffect = `${file}, loaded ${formatTime(loadedAt)}, ${plural(rules, "rule")}.`;
  const content = [create("p", {}, isRefused ? `Still in effect: ${inEffect}` : `In effect: ${inEffect}`)];
  if (reload) content.push(create("p", {}, `Last reload: ${formatTime(reload.at)}, by ${reload.by}.`));
  if (isRefused) content.push(...reload.errors.map(configError));
  const button = createButton(isRefused ? "Reload again" : "Reload", reloadConfiguration, { class: "primary" });
  showDetails(isRefused ? `Reload refused at ${formatTime(reload.at)}` : "Configuration", content, [button]);
}

function configError({ file, line, column, length, message, source }) {
  const parts = [create("p", { class: "error" }, `${file}:${line}:${column}: ${message}`)];
  if (source) {
    const gutter = String(line), indent = " ".repeat(Math.max(0, column - 1));
    const mark = create("mark", {}, "^".repeat(Math.max(1, length)));
    parts.push(create("pre", { tabindex: 0 }, `${gutter} | ${source}\n${" ".repeat(gutter.length)} | ${indent}`, mark));
  }
  return create("div", {}, parts);
}

async function reloadConfiguration() {
  try {
    const { rules } = await call("reload", { method: "POST" });
    find("#details").close();
    showToast(`The configuration is reloaded: ${plural(rules, "rule")}.`);
  } catch (error) {
    if (!error.errors) showToast(`Reload failed: ${error.message}.`);
  }
  await loadAll().catch(() => {});
  const last = state.status?.config.last_reload;
  if (last && !last.ok) showConfiguration();
}
