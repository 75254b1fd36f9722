// Runs pytest inside the very runtime that pages load, on the installed wheel.
const fetched = async (url) => {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
};

self.onmessage = async ({ data: { runtime, wheels, tests, stdlib, code } }) => {
  try {
    const { loadPyodide } = await import(`${runtime}pyodide.mjs`);
    const pyodide = await loadPyodide({ indexURL: runtime, packages: ["py-memory"] });
    const extractDir = pyodide.runPython("import site; site.getsitepackages()[0]");
    for (const wheel of wheels) pyodide.unpackArchive(await fetched(wheel), "wheel", { extractDir });
    // pytest and hypothesis use modules (unittest, doctest, pdb) that the runtime for pages leaves out.
    pyodide.FS.writeFile("/stock_stdlib.zip", await fetched(stdlib));
    pyodide.unpackArchive(await fetched(tests), "zip", { extractDir: "/checkout" });
    self.postMessage({ result: await pyodide.runPythonAsync(code) });
  } catch (error) {
    self.postMessage({ error: String(error?.message ?? error) });
  }
};
