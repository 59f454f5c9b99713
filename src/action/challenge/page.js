(async () => {
  const find = (selector) => document.querySelector(selector);
  const data = find("main").dataset, button = find("button"), form = find("form"), KEY = "lockgate-rounds";
  const say = (text) => { find("[role=status]").textContent = text; };
  const proceed = () => (form ? HTMLFormElement.prototype.submit.call(form) : location.reload());
  const stop = (text) => {
    say(text);
    button.hidden = false;
    button.focus();
  };
  const roundsBefore = () => {
    const now = Date.now(), saved = JSON.parse(sessionStorage.getItem(KEY) || "[]");
    const recent = saved.filter((time) => now - time < 60000);
    sessionStorage.setItem(KEY, JSON.stringify([...recent, now]));
    return recent.length;
  };
  button.onclick = () => {
    try { sessionStorage.removeItem(KEY); } catch { /* It is blocked, so nothing is stored. */ }
    proceed();
  };
  if (!window.crypto || !crypto.subtle) return stop("This check needs a secure connection and a current browser.");
  let rounds = 0;
  try { rounds = roundsBefore(); } catch { rounds = -1; }
  if (!navigator.cookieEnabled || rounds < 0) return stop("This check needs cookies. Allow cookies for this site, then try again.");
  if (rounds > 2) return stop("The check succeeded, but the site did not recognize it. Your browser may not store cookies. Allow them for this site, then try again.");
  say(data.hint);
  try {
    const challenge = { salt: data.salt, iterations: +data.iterations, bits: +data.bits, parts: +data.parts };
    const solution = await findSolution(challenge, (done, parts) => say(`Checking your browser. ${done} of ${parts}.`));
    const response = await postSolution(data.url, { token: data.token, solution }, "same-origin");
    if (response.status !== 204 && response.status !== 403) return stop("The check did not work. Try again in a moment.");
    if (data.then === "back") return say("Done. Go back and send the form again.");
    say("Done. The page continues.");
    proceed();
  } catch {
    stop("The check did not work. Look at your connection, then try again.");
  }
})();
