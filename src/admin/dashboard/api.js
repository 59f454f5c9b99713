// Calls the admin API, and asks for the token. Addresses are relative, so that a path prefix works. The token stays in
// this tab and never becomes part of a URL.

const TOKEN_KEY = "lockgate-token";

/** Sends a request. After a 401 it asks for the token and repeats the request. */
async function request(path, { method = "GET", body, signal } = {}) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN_KEY);
    const headers = {};
    if (token) headers.authorization = `Bearer ${token}`;
    if (body) headers["content-type"] = "application/json";
    const response = await fetch(`api/${path}`, { method, headers, signal, body: body && JSON.stringify(body) });
    if (response.status !== 401) return response;
    const isStillCurrent = token === sessionStorage.getItem(TOKEN_KEY);
    if (isStillCurrent) await askForToken(token ? "The gateway refused this token." : "");
  }
}

/** Sends a request and returns the JSON of the response. Throws the server's sentence. */
async function call(path, options) {
  let response;
  try {
    response = await request(path, options);
  } catch {
    throw new Error("The gateway cannot be reached");
  }
  return readJson(response);
}

async function readJson(response) {
  const data = await response.json().catch(() => ({}));
  if (response.ok) return data;
  const error = new Error(data.error ?? `The gateway responded with status ${response.status}`);
  error.status = response.status;
  error.errors = data.errors;
  throw error;
}

/** Builds a query string. Parameters without a value are left out. */
function queryString(parameters) {
  const present = Object.entries(parameters).filter(([, value]) => value);
  return present.length ? `?${new URLSearchParams(present)}` : "";
}

/** Returns `load` with at most one call in progress, so that a slow gateway does not collect calls. */
function oneAtATime(load) {
  let running = null;
  return () => (running ??= load().finally(() => { running = null; }));
}

let tokenPrompt = null;

/** Shows the token dialog once for all requests that wait for it. Resolves when the user has entered a token. */
function askForToken(error) {
  const dialog = find("#token-dialog"), form = find("form", dialog);
  setText(find(".error", dialog), error);
  tokenPrompt ??= new Promise((resolve) => {
    setPageState("auth");
    form.onsubmit = () => {
      sessionStorage.setItem(TOKEN_KEY, form.token.value.trim());
      form.reset();
      tokenPrompt = null;
      setPageState("loading");
      resolve();
    };
    // Escape does not help: without the token there is nothing to show.
    dialog.onclose = () => { if (tokenPrompt) dialog.showModal(); };
    dialog.showModal();
  });
  return tokenPrompt;
}
