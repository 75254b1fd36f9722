/** Jobs of the measurements with several tabs; each tab keeps its memory in `window`. */
const { openMemory } = await import("/py-memory/memory.js");

/** Open in this tab and say how long it took. */
export async function open({ name = "tabs" }) {
  const start = performance.now();
  window.memory = await openMemory({ name });
  const ms = performance.now() - start;
  window.session = await memory.startSession({ userId: "u", sessionId: "s" });
  return { ms };
}

/** One call after the other, so often; how long each took. */
export async function calls({ rounds }) {
  const times = [];
  for (let i = 0; i < rounds; i += 1) {
    const start = performance.now();
    await session.remember(`turn ${i} of a conversation about travelling`);
    times.push(performance.now() - start);
  }
  return times;
}

/** Write as fast as is acknowledged, for so long; what was acknowledged. */
export async function contend({ tab, ms }) {
  const end = performance.now() + ms;
  const acknowledged = [];
  while (performance.now() < end) {
    const text = `tab ${tab} wrote ${acknowledged.length}`;
    await session.remember(text);
    acknowledged.push(text);
  }
  return acknowledged;
}

/** Everything that is there, by a plain listing. */
export async function contents() {
  const found = [];
  let cursor;
  do {
    const page = await memory.timeline({ userId: "u", limit: 1000, ...(cursor ? { cursor } : {}) });
    found.push(...page.map(({ content }) => content));
    cursor = page.cursor;
  } while (cursor);
  return found;
}

/** Begin to ask, call after call; `took()` tells the longest wait once the owner has gone. */
export async function wait() {
  window.waits = (async () => {
    let longest = 0;
    let asked = 0;
    while (!window.enough || asked < 3) {
      const start = performance.now();
      try {
        await session.remember("while waiting");
      } catch ({ code }) {
        // The owner was stopped inside a transaction of the browser's storage: nobody gets past that.
        if (code === "storage_blocked") return null;
        throw new Error(code);
      }
      longest = Math.max(longest, performance.now() - start);
      if (window.enough) asked += 1;
    }
    return longest;
  })();
}

export async function took() {
  window.enough = true;
  return await window.waits;
}
