
// Solves the challenge of a 429 response (or of its JSON document) and posts the solution. Resolves once the browser has
// the clearance: send the request again. Rejects with an Error whose `reason` says why.
export async function solve(response, { signal, onProgress } = {}) {
  const failure = (reason, message) => Object.assign(new Error(message), { reason });
  if (!globalThis.crypto || !crypto.subtle) throw failure("unsupported", "WebCrypto is not available; it needs https");
  const isResponse = typeof response?.json === "function";
  const read = async () => (isResponse ? response.clone().json() : response);
  const challenge = (await read().catch(() => null))?.challenge;
  const texts = [challenge?.token, challenge?.salt, challenge?.url];
  const numbers = [challenge?.iterations, challenge?.bits, challenge?.parts];
  if (!texts.every((text) => typeof text === "string") || !numbers.every(Number.isInteger)) {
    throw failure("no_challenge", "the response contains no challenge that can be read");
  }
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
