/**
 * Put before the worker's own code: it tells the test's server when a write has come to a certain phase. The
 * request is synchronous, so that the server can kill the browser while the worker stands exactly there.
 */
{
  const ask = (path) => {
    const request = new XMLHttpRequest();
    request.open("POST", `EVIDENCE/${path}`, false);
    request.send();
    return request.responseText;
  };
  /** {phase, after, early, dies}: at which phase, after how many of its kind, in which of two places, with what end. */
  let plan = JSON.parse(ask("worker"));
  const channel = new BroadcastChannel("crashing");
  channel.onmessage = () => void (plan = JSON.parse(ask("go")));

  /** Whether the worker has just been ended. @param {string} phase */
  const reached = (phase, early = false) => {
    if (plan.phase !== phase || Boolean(plan.early) !== early) return false;
    plan.after -= 1;
    if (plan.after >= 0) return false;
    const { dies } = plan;
    plan = {};
    if (dies) self.close();
    else ask(`phase/${phase}`);
    return Boolean(dies);
  };

  const { commit } = IDBTransaction.prototype;
  IDBTransaction.prototype.commit = function () {
    const write = this.objectStoreNames.contains("meta");
    if (write) {
      this.addEventListener("complete", () => void reached("reply", true));
      reached("complete", true);
    }
    commit.call(this);
    if (write) reached("complete");
  };

  const { postMessage } = BroadcastChannel.prototype;
  BroadcastChannel.prototype.postMessage = function (message) {
    if (message.kind === "answer" && reached("reply")) return;
    postMessage.call(this, message);
  };
  const answer = self.postMessage.bind(self);
  self.postMessage = (message, transfer) => {
    if ("ok" in message && reached("reply")) return;
    answer(message, transfer);
  };

  /** Called by boot.js before our package is imported. */
  globalThis.crashing = (pyodide) => {
    globalThis.crashingReached = (phase) => void reached(phase);
    pyodide.runPython(PYTHON);
  };
}
