// Toasts, questions and Undo.

const UNDO_MILLIS = 10_000;
const MAX_TOASTS = 3;

/** The newest action that can be undone: `{ run, until }`. */
let newestUndo = null;

/** Shows a message for 10 s, with a button if `undo` is given. Returns the toast. */
function showToast(message, undo) {
  const toast = create("div", { class: "toast", tabindex: -1 }, create("span", {}, message));
  if (undo) toast.append(createButton("Undo", offerUndo(undo, () => toast.remove())));
  const toasts = find("#toasts");
  while (toasts.childElementCount >= MAX_TOASTS) toasts.firstElementChild.remove();
  toasts.append(toast);
  setTimeout(() => toast.remove(), UNDO_MILLIS);
  return toast;
}

/** Makes `undo` what the key `z` does for 10 s. Returns the function that undoes, once. */
function offerUndo(undo, onDone = () => {}) {
  const offer = { until: Date.now() + UNDO_MILLIS };
  offer.run = () => {
    if (newestUndo === offer) newestUndo = null;
    onDone();
    undo();
  };
  newestUndo = offer;
  return offer.run;
}

function undoNewest() {
  if (newestUndo && newestUndo.until > Date.now()) newestUndo.run();
}

/** Waits for an action and shows why it failed. Returns its result, or `undefined` after a failure. */
async function attempt(what, action) {
  try {
    return await action;
  } catch (error) {
    showToast(`${what} failed: ${error.message}.`);
    return undefined;
  }
}

/** Asks before an action that is hard to take back. Resolves to whether the user agrees. */
function confirmAction(title, text, label) {
  const dialog = find("#question");
  setText(find("h2", dialog), title);
  setText(find("p", dialog), text);
  setText(find(".primary", dialog), label);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => { dialog.onclose = () => resolve(dialog.returnValue === "yes"); });
}

/** Shows a dialog with a title, content and buttons. The last button is the primary one and has the focus. */
function showDetails(title, content, buttons) {
  const dialog = find("#details");
  const close = createButton("Close", () => dialog.close(), { class: "quiet" });
  const row = create("div", { class: "row end" }, close, buttons);
  find(".box", dialog).replaceChildren(create("h2", { id: "details-title" }, title), ...content, row);
  if (!dialog.open) dialog.showModal();
  row.lastElementChild.focus();
}

/** Returns ", on this gateway only" if a change of fleet state did not reach the store. */
function scopeNote(result) {
  const isLocal = result?.scope === "node" && state.status?.store.kind === "redis";
  return isLocal ? ", on this gateway only because the store is unavailable" : "";
}
