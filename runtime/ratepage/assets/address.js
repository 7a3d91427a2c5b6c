// What the page shows, in its address behind the #, which no server sees.

export const read = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

// write changes what the address says. A value of null is left out.
export function write(changes) {
  const params = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined) params.delete(name);
    else params.set(name, value);
  }
  const text = params.toString();
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}
