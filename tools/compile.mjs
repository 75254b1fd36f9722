// Compiles Python archives to bytecode inside the Pyodide that will run them.
// node compile.mjs <pyodide folder> <script.py> <job.json> <stdlib zip or ""> ; job: {input, output, ...}
// The archive is written by Pyodide's own zlib, so that its bytes are the same on every machine.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, script, jobFile, stdlib] = process.argv.slice(2);
try {
  const { loadPyodide } = await import(pathToFileURL(join(folder, "pyodide.mjs")).href);
  const pyodide = await loadPyodide({
    indexURL: folder,
    ...(stdlib ? { stdLibURL: stdlib } : {}),
    lockFileContents: JSON.stringify({
      info: JSON.parse(await readFile(join(folder, "pyodide-lock.json"), "utf8")).info,
      packages: {},
    }),
    packageBaseUrl: folder,
  });
  const job = JSON.parse(await readFile(jobFile, "utf8"));
  pyodide.FS.writeFile("/input.zip", new Uint8Array(await readFile(job.input)));
  pyodide.globals.set("job_text", JSON.stringify(job));
  await pyodide.runPythonAsync(await readFile(script, "utf8"));
  await writeFile(job.output, pyodide.FS.readFile("/output.zip"));
} catch (error) {
  // The message alone: Node would print the line of a file that is one line of a megabyte.
  console.error(String(error?.message ?? error));
  process.exitCode = 1;
}
