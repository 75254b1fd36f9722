// @ts-check
/** Gives tests a worker with Python and the package: lab.run(code) answers with the code's last value. */
const worker = new Worker(new URL(`lab_worker.mjs${location.search}`, import.meta.url), { type: "module" });
/** @type {Map<number, {resolve: (value: unknown) => void, reject: (reason: Error) => void}>} */
const waiting = new Map();
let count = 0;
worker.onmessage = ({ data: { id, value, error } }) => {
  const one = waiting.get(id);
  waiting.delete(id);
  if (error === undefined) one?.resolve(value);
  else one?.reject(new Error(error));
};
Object.assign(globalThis, {
  lab: {
    worker,
    /** @param {string} code */
    run: (code) =>
      new Promise((resolve, reject) => {
        waiting.set(++count, { resolve, reject });
        worker.postMessage({ id: count, code });
      }),
  },
});
