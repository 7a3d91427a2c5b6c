// Requests. All addresses are relative, so the page works under any prefix.

async function answer(response) {
  let body = null;
  try {
    body = await response.json();
  } catch {
    // Something in between has answered.
  }
  if (!response.ok) throw new Error(body?.error ?? `The server answered ${response.status}.`);
  return body;
}

export async function get(path, params = {}) {
  const query = new URLSearchParams(params).toString();
  return answer(await fetch(query ? `${path}?${query}` : path));
}

// act asks for an action.
export async function act(action) {
  return answer(await fetch("api/actions", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(action),
  }));
}
