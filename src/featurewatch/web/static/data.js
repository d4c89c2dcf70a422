// Fetches documents. No view is known here.

export const ROOT = 'api/v1';
const MAX_STORED = 50;
const stored = new Map();

export class Refusal extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export function urlOf(path, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).flatMap(
    ([name, value]) => [value].flat().filter(Boolean).map((item) => [name, item]),
  ));
  return `${ROOT}/${path}${[...query].length ? `?${query}` : ''}`;
}

// A document; what has not changed is not sent again.
export async function get(path, parameters = {}) {
  const url = urlOf(path, parameters);
  const before = stored.get(url);
  const response = await fetch(url, { headers: before ? { 'If-None-Match': before.etag } : {} });
  if (response.status === 304 && before) return before.body;
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refusal(response.status, body.detail || response.statusText);
  const etag = response.headers.get('ETag');
  if (etag) {
    stored.delete(url);
    stored.set(url, { etag, body });
    if (stored.size > MAX_STORED) stored.delete(stored.keys().next().value);
  }
  return body;
}
