
// Solves the challenge of a 429 response (or of its JSON document) and posts the solution. Resolves once the browser has
// the clearance: send the request again. Rejects with an Error whose `reason` says why.
export async function solve(response, { signal, onProgress } = {}) {
  const failure = (reason, message) => Object.assign(new Error(message), { reason });
  if (!globalThis.crypto || !crypto.subtle) throw failure("unsupported", "WebCrypto is not available; it needs https");
  const isResponse = typeof response.json === "function";
  const problem = isResponse ? await response.clone().json().catch(() => null) : response;
  const challenge = problem && problem.challenge;
  if (!challenge) throw failure("no_challenge", "the response contains no challenge");
  const url = new URL(challenge.url, (isResponse && response.url) || import.meta.url);
  let posted;
  try {
    const solution = await findSolution(challenge, onProgress || (() => {}), signal);
    posted = await postSolution(url, { token: challenge.token, solution }, "include", signal);
  } catch (error) {
    if (signal && signal.aborted) throw failure("aborted", "the check was aborted");
    throw failure("network", `the solution could not be sent: ${error.message}`);
  }
  if (posted.status === 204) return;
  const refusal = await posted.json().catch(() => ({}));
  throw failure(refusal.reason || `status_${posted.status}`, refusal.detail || "the solution was refused");
}
