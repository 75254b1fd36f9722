/** A stock Pyodide, as its documentation starts it, and SQLite imported. */
import { loadPyodide } from "/stock/pyodide.mjs";

try {
  const pyodide = await loadPyodide({ indexURL: "/stock/" });
  pyodide.runPython("import sqlite3; sqlite3.connect(':memory:').execute('select 1').fetchall()");
  postMessage("ready");
} catch (error) {
  postMessage(String(error));
}
