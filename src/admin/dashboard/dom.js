// Builds and updates elements. Text that clients sent becomes text nodes only: nothing here parses markup.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "g", "path", "line", "text"]);

const find = (selector, root = document) => root.querySelector(selector);

/** Returns a new element. Functions among the attributes become event listeners: `{ onclick: remove }`. */
function create(tag, attributes, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG_NAMESPACE, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

/** Returns a new button. */
function createButton(text, onclick, attributes = {}) {
  return create("button", { type: "button", onclick, ...attributes }, text);
}

/** Returns a heading row of a table. A text in parentheses is only for assistive technology. */
function createHeading(texts) {
  const cell = (text) => (text.startsWith("(") ? create("span", { class: "hidden" }, text.slice(1, -1)) : text);
  return create("thead", {}, create("tr", {}, texts.map((text) => create("th", {}, cell(text)))));
}

/** Sets the text of an element, and touches the document only if the text changes. */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets an attribute, and touches the document only if the value changes. `null` removes it. */
function setAttribute(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

/** Sets a text that can be cut off, and its title. */
function setTextAndTitle(element, text) {
  setText(element, text);
  setAttribute(element, "title", text);
}

/** Sets the share of its bar that an element fills, from 0 to 1. */
function setShare(element, share) {
  const value = Math.min(1, Math.max(0, share || 0)).toFixed(4);
  if (element.style.getPropertyValue("--share") !== value) element.style.setProperty("--share", value);
}

/** The rows of each list that `syncRows` keeps, by key. */
const rowsOf = new WeakMap();

/**
 * Makes `parent` show `items` after its first `skip` children. Rows have keys: a row that stays is updated and, if the
 * order changes, moved, but never rebuilt, so that focus is not lost. A list whose order changes all the time uses the
 * index as the key: its rows never move, and only their text changes.
 */
function syncRows(parent, items, { keyOf, build, update, skip = 0 }) {
  const old = rowsOf.get(parent) ?? new Map();
  const rows = new Map();
  items.forEach((item, index) => {
    const key = keyOf(item, index);
    if (!rows.has(key)) rows.set(key, old.get(key) ?? build(item));
    update(rows.get(key), item);
  });
  for (const [key, row] of old) if (!rows.has(key)) row.remove();
  rowsOf.set(parent, rows);
  let next = parent.children[skip] ?? null;
  for (const row of rows.values()) {
    if (row === next) next = next.nextElementSibling;
    else parent.insertBefore(row, next);
  }
}

/** Returns the row of a key in a list that `syncRows` keeps. */
const rowWithKey = (parent, key) => rowsOf.get(parent)?.get(key);

const hasHoveringPointer = matchMedia("(hover: hover)");

/** The key of a row that never moves. */
const byIndex = (item, index) => index;

const TAP_MILLIS = 2_000;
let newestTap = { target: null, at: 0 };
document.addEventListener("pointerdown", ({ target }) => { newestTap = { target, at: Date.now() }; }, true);

/** Whether rows must keep what they show: the pointer or the keyboard focus is inside, or a finger just was. */
function isHeld(element) {
  if (hasHoveringPointer.matches && element.matches(":hover")) return true;
  if (element.contains(newestTap.target) && Date.now() - newestTap.at < TAP_MILLIS) return true;
  return element.matches(":focus-visible") || element.querySelector(":focus-visible") !== null;
}

/** Scrolls to a section and moves the focus there. */
function goTo(id) {
  const section = document.getElementById(id);
  section.scrollIntoView({ block: "start" });
  section.focus({ preventScroll: true });
}

/** Replaces the options of a select after its first `fixed` options and keeps the selected value if it still exists. */
function setOptions(select, options, fixed) {
  const selected = select.value;
  const old = [...select.options].slice(fixed).map((option) => option.value);
  if (old.join("\n") === options.map(([value]) => value).join("\n")) return;
  while (select.options.length > fixed) select.lastElementChild.remove();
  select.append(...options.map(([value, text]) => create("option", { value }, text)));
  select.value = selected;
  if (select.selectedIndex < 0) select.selectedIndex = 0;
}
