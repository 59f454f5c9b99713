// One client: what the rules did with it, and the shortest path to unban it.

const EXEMPTION = "1h";
const SHOWN_CLIENT_DECISIONS = 8;

function setUpFind() {
  find("#find").onsubmit = (event) => {
    event.preventDefault();
    const query = find("#find-query").value.trim();
    if (query) openClient(query);
  };
}

/** Finds a client by address, key or request id, and shows what is known about it. A rule's name opens the rule. */
async function openClient(query) {
  if (ruleNamed(query)) {
    openRule(query);
    return;
  }
  try {
    showClient(query, await call(`clients/${encodeURIComponent(query)}`));
  } catch (error) {
    showUnknownClient(query, error);
  }
}

function showClient(query, client) {
  const { ip, bans: active, decisions } = client;
  const content = [
    create("p", {}, describeClient(client)),
    ...active.map(clientBan),
    decisions.length > 0 && clientDecisions(decisions),
  ];
  showDetails(ip ?? query, content.filter(Boolean), clientButtons(client));
}

function clientButtons(client) {
  const { ip, bans: active, exempt_until: exemptUntil } = client;
  const buttons = [createButton("Explain", () => explainClient(client))];
  if (exemptUntil) buttons.push(createButton("End exemption", () => endClientExemption(client)));
  else if (ip) {
    const text = active.length > 0 ? "Unban and exempt for 1 h" : "Exempt for 1 h";
    buttons.push(createButton(text, () => release(client, true)));
  }
  if (active.length > 0) {
    const text = active.length === 1 ? "Unban" : `Unban ${active.length} keys`;
    buttons.push(createButton(text, () => release(client, false), { class: "primary" }));
  }
  return buttons;
}

/** A client that no ban and no recorded decision names: it can still be exempted and explained. */
function showUnknownClient(query, error) {
  const client = { ip: IP_ADDRESS.test(query) ? query : null, bans: [], decisions: [] };
  const canAct = error.status === 404 && client.ip;
  const buttons = canAct ? [
    createButton("Exempt for 1 h", () => release(client, true)),
    createButton("Explain", () => explainClient(client), { class: "primary" }),
  ] : [];
  showDetails(query, [create("p", {}, toSentence(error.message))], buttons);
}

function describeClient(client) {
  const { as_name: network, bans: active, exempt_until: exemptUntil } = client;
  const where = [formatOrigin(client), network].filter(Boolean).join(", ");
  const count = active.length === 0 ? "No ban applies" : plural(active.length, "ban applies", "bans apply");
  const exempt = exemptUntil ? `Exempt until ${formatTime(exemptUntil)}.` : "";
  return [where && `${where}.`, `${count} now.`, exempt, describeCounts(client)].filter(Boolean).join(" ");
}

/** Says what this gateway did with the client, as far back as its record of decisions goes. */
function describeCounts({ mitigated, forwarded, window_start: start }) {
  if (!start) return "";
  const node = state.status?.store.kind === "redis" ? " on this node" : "";
  const passed = forwarded == null ? "" : `${formatNumber(forwarded)} forwarded, `;
  return `Since ${formatTime(start)}${node}: ${passed}${formatNumber(mitigated)} mitigated.`;
}

function clientBan({ rule, action, dry_run: isDryRun, key, until, cause, addresses, mitigated, offence }) {
  // The gateway counts addresses up to 64.
  const count = addresses >= 64 ? `${formatNumber(addresses)} or more` : formatNumber(addresses);
  const facts = [`Offence ${offence}`, `${plural(mitigated, "request")} mitigated`];
  if (addresses > 1) facts.push(`${count} addresses share this key`);
  return create("div", { class: "client-ban" },
    create("b", {}, rule),
    actionChip(action, isDryRun),
    create("span", { class: "end" }, `${formatRemaining(until)} left`),
    create("p", { class: "mono" }, key || "all requests"),
    create("p", {}, `${cause ? `${cause}. ` : ""}${facts.join(", ")}.`));
}

function clientDecisions(decisions) {
  const row = (decision) => create("tr", {},
    create("td", {}, formatTime(decision.ts)),
    create("td", { class: "mono clip", title: formatRequest(decision) }, formatRequest(decision)),
    create("td", { class: "clip" }, decision.rule ?? "–"),
    create("td", {}, actionChip(decision.action, decision.dry_run)));
  return create("table", { class: "client-decisions" },
    create("caption", {}, "Newest decisions"),
    create("tbody", {}, decisions.slice(0, SHOWN_CLIENT_DECISIONS).map(row)));
}

/** Removes every ban of a client, and exempts it for an hour if asked. Undo takes both back. */
async function release(client, isExempted) {
  const removed = [];
  for (const ban of client.bans) {
    const result = await attempt("Unban", removeBan(ban.rule, ban));
    if (result) removed.push(result);
  }
  const exemption = isExempted ? await attempt("Exemption", addExemption(client.ip, EXEMPTION)) : undefined;
  find("#details").close();
  releaseChanged(client);
  if (removed.length === 0 && !exemption) return;
  const name = client.ip ?? client.bans[0].key;
  const parts = [removed.length > 0 && "is unbanned", exemption && "is exempt for 1 h"].filter(Boolean);
  const undo = async () => {
    for (const ban of removed) await restoreBan(ban);
    if (exemption) await attempt("Undo", removeExemption(client.ip));
    releaseChanged(client);
  };
  showToast(`${name} ${parts.join(" and ")}${scopeNote(removed[0] ?? exemption)}.`, undo).focus();
}

async function endClientExemption({ ip }) {
  find("#details").close();
  await loadExemptions();
  await endExemption(bans.exemptions.find((exemption) => exemption.ip === ip) ?? { ip, until: "" });
}

async function releaseChanged(client) {
  await loadExemptions();
  bansChanged(...client.bans.map(({ rule }) => rule));
}

function explainClient({ ip, decisions }) {
  find("#details").close();
  fillExplain(decisions[0] ? requestOf(decisions[0]) : { ip });
}
