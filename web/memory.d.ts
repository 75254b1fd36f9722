/**
 * py-memory in a page: a memory for agents, kept in the browser's IndexedDB by Python and SQLite in a worker.
 *
 * ```js
 * import { openMemory } from "./py-memory/memory.js";
 *
 * const memory = await openMemory({ name: "agent_memory" });
 * const session = await memory.startSession({ userId: "u_1", userName: "Ann" });
 * await session.remember("I prefer window seats", { speaker: "Ann" });
 * const [hit] = await session.recall("which seat?");   // hit.fragment.content, hit.score, hit.cite
 * await memory.close();
 * ```
 *
 * **Where the files are.** The folder `py-memory` is served as it was built, from the page's own origin. The worker
 * is created as `new Worker(new URL("./worker.js", import.meta.url), { type: "module" })`, which Vite, webpack,
 * Rollup and Parcel understand; a bundler moves this module, though, so there say where the folder is:
 * `openMemory({ assetBase: "/py-memory/" })`. Vite also wants `worker: { format: "es" }`.
 *
 * **Content security policy.** Nothing but this is needed:
 * `default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; img-src 'self' blob:`.
 * A worker obeys the policy that is sent with its own file, so send it with `worker.js` as well as with the page.
 *
 * **Errors.** Every rejection is a {@link PyMemoryError}; nothing is written when an option is refused.
 *
 * @module
 */

/** A time: a Date, ISO 8601 text (without an offset: in the `timeZone` that the verb is given, else UTC), or milliseconds since 1970. */
export type Time = Date | string | number;

/** What JSON can carry. Dates become ISO text; NaN, functions, Map, Set and bytes are refused. */
export type Json = string | number | boolean | null | Date | readonly Json[] | { readonly [key: string]: Json | undefined };

/** The caller's own data; its keys stay as they are. */
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** A place on the map; `accuracy` in metres. */
export interface Place {
  lat: number;
  lng: number;
  accuracy?: number;
  label?: string;
}

/** What can be remembered. Bytes are copied, never detached; a Blob's type becomes the `mediaType`. */
export type Content = string | Blob | ArrayBuffer | ArrayBufferView | Place;

export type FragmentType = "text" | "image" | "audio" | "location" | "event";
export type Role = "user" | "assistant" | "system" | "tool";
export type Scope = "working" | "episodic" | "semantic" | "procedural";
export type Tier = "L1" | "L2" | "L3";

/**
 * How long a caller waits. Both reject the call, with `aborted` or `timeout`; **the write may still happen**, for what
 * the worker has begun it finishes. A call that had not begun is dropped.
 *
 * ```js
 * await session.recall("seat", { timeoutMs: 2_000 });
 * await session.remember(text, { signal: controller.signal });
 * ```
 */
export interface CallOptions {
  signal?: AbortSignal;
  timeoutMs?: number;
}

/** Tuning; each has the default that is shown. Sizes in bytes, times in milliseconds. */
export interface Settings {
  /** 1 MiB */ maxTextBytes?: number;
  /** 64 MiB */ maxBlobBytes?: number;
  /** 256 KiB */ maxJsonBytes?: number;
  /** 32 */ maxJsonDepth?: number;
  /** 1.0 */ exactWeight?: number;
  /** 0.7 */ nearWeight?: number;
  /** 0.3 */ meaningWeight?: number;
  /** 0.5 */ relevanceFloor?: number;
  /** 0.6 */ strengthFloor?: number;
  /** 0.3 */ minScore?: number;
  /** one hour */ nearWindowMs?: number;
  /** 5 of 1 to 10 */ baseScore?: number;
  /** 0.9 */ decayRate?: number;
  /** 720 */ halfLifeHours?: number;
  /** 24 */ halfLifeHoursShort?: number;
  /** 0.5 */ accessBonus?: number;
  /** 2 */ accessBonusMax?: number;
  /** 3600 */ workingTtlSeconds?: number;
  /** 15,000 */ postingBudget?: number;
  /** half an hour */ neighbourPauseMs?: number;
  /** 0.6 */ rankCoverageFloor?: number;
  /** 0.9 */ rankQuestion?: number;
  /** 1.3 */ rankSpeaker?: number;
  /** 2.5 */ rankDay?: number;
  /** 0.5 */ rankNext?: number;
  /** 0.2 */ rankPrevious?: number;
  /** 0.3 */ rankTwoAway?: number;
  /** 0.2 */ rankSession?: number;
  /** 0.7 */ rankCharacter?: number;
}

/** Where opening has come to: the worker, the files, WebAssembly, Python, the stored image, done. */
export type Stage = "worker" | "assets" | "runtime" | "python" | "image" | "ready";

/** At stage `assets`: bytes read so far, and how many there are in all once the list of files is read. */
export interface StageDetail {
  loaded?: number;
  total?: number;
}

export interface OpenOptions {
  /** The memory's name, one database each; `agent_memory`. */
  name?: string;
  settings?: Settings;
  /** IANA name for days and windows; the browser's own zone. */
  timeZone?: string;
  /** `relaxed` acknowledges before the disk has it: faster, and the last writes can be lost with the power; `strict`. */
  durability?: "strict" | "relaxed";
  /**
   * Seals the stored memory; not empty, compared after NFKC. A new memory is sealed from its first byte, a plain one is
   * converted, a sealed one opens with its own only. Lost, nothing opens the memory.
   */
  passphrase?: string;
  /** `memory`: where the browser refuses storage, open a memory that ends with the page (`storage.mode` says so); none. */
  fallback?: "memory";
  /** A fixed present in milliseconds since 1970, for tests and simulations. */
  clock?: number;
  /** The folder of our files; that of this module. */
  assetBase?: string | URL;
  /** How long a stage of opening may go without progress before it fails; 30,000. */
  timeoutMs?: number;
  onProgress?: (stage: Stage, detail: StageDetail) => void;
}

/**
 * Open a memory. The same name gives the same promise, hence one worker, for as long as it is open or opening (the options
 * of the first call count). A failed opening is forgotten: call again.
 *
 * ```js
 * const memory = await openMemory({ name: "agent_memory", onProgress: (stage) => console.log(stage) });
 * ```
 *
 * @throws {BootError} the runtime did not start: `details` has `stage`, `url`, `hint`
 * @throws {PyMemoryError} `insecure_context`, `already_open`, `invalid_argument`, `wrong_passphrase`, `corrupt_image`, `schema_newer`, …
 */
export function openMemory(options?: OpenOptions): Promise<Memory>;

/**
 * The stored pages of a memory as they are, unchecked, even when it cannot be opened (`corrupt_image`, `schema_newer`) or
 * another tab owns it; nothing is changed. What SQLite makes of them is another matter. Sealed pages are opened with the
 * `passphrase`; those that do not open are zeros.
 *
 * ```js
 * const file = await exportRaw({ name: "agent_memory" });
 * ```
 *
 * @throws {PyMemoryError} `not_found` when nothing is stored under the name, `wrong_passphrase`, `storage_lost`, `boot_failed`
 */
export function exportRaw(options?: Pick<OpenOptions, "name" | "passphrase" | "assetBase" | "timeoutMs" | "onProgress">): Promise<Blob>;

/** What `recover` found. Numbers only, never content. */
export interface RecoveryReport {
  /** Nothing was damaged, lost or made up. */
  complete: boolean;
  /** Pages that were looked at. */
  pages: number;
  /** How often each kind of damage was met. */
  damage: Record<string, number>;
  /** By table. */
  tables: Record<string, RecoveredRows>;
}

/** What became of one table. */
export interface RecoveredRows {
  /** Rows that were kept. */
  rows: number;
  /** Those of them in which something does not fit. */
  doubtful: number;
  /** Rows made up, so that others that refer to them could be kept. */
  placeholders: number;
  /** Rows that are known to have been there, and could not be kept. */
  lost: number;
}

/**
 * What can still be read of a memory that does not open, as a new database, and a report of what was lost.
 * Nothing is changed, unless `replace` is true: then the stored memory is replaced by it, in one transaction.
 * Export the raw bytes first: what could not be read is gone after that.
 *
 * ```js
 * const raw = await exportRaw({ name: "agent_memory" });
 * const { image, report } = await recover({ name: "agent_memory" });
 * await recover({ name: "agent_memory", replace: true });
 * ```
 *
 * @throws {PyMemoryError} `already_open` (with `replace`), `not_found`, `corrupt_image` when nothing can be read,
 *   `schema_newer`, `unsupported_format`, `storage_lost`, `boot_failed`
 */
export function recover(
  options?: Pick<OpenOptions, "name" | "assetBase" | "timeoutMs" | "onProgress"> & { replace?: boolean },
): Promise<{ image: Blob; report: RecoveryReport }>;

/** How the memory is kept. */
export interface StorageState {
  /** `persistent`: the browser promised not to evict it; `best-effort`: it may, when the disk is full; `memory`: not kept. */
  mode: "persistent" | "best-effort" | "memory";
  persisted: boolean;
  /** Bytes used by this origin and granted to it, where the browser tells. */
  usage: number | null;
  quota: number | null;
  /** Counts the commits that are on disk. */
  generation: number;
}

/** A write that is on disk: which verb, whose, which fragments. Never content. */
export interface Change {
  verb: string;
  userId?: string;
  sessionId?: string;
  ids?: string[];
}

export interface MemoryEvents {
  progress: { stage: Stage } & StageDetail;
  change: Change;
  storage: StorageState;
  /**
   * Who answers now: this tab's own worker (`owner`), or another tab's (`follower`). Tells of takeovers;
   * there is nothing that a page has to do.
   */
  owner: { role: "owner" | "follower" };
  /** Another tab has a newer version of this library. Calls under way are answered; offer to reload the page. */
  outdated: Record<string, never>;
  /** The memory is closed: by `close()` (`closed`), or because of what `code` says. */
  closed: { code: ErrorCode };
}

/** A list with `cursor`: pass it to the same verb for what follows; null at the end. */
export type Page<T> = T[] & { cursor: string | null };

/** What an intent is made of; with a `key` it is a fact that later ones can replace. */
export interface IntentInput {
  name: string;
  entities?: JsonObject;
  /** 0 to 1; 1. */
  confidence?: number;
  key?: string;
  subject?: string;
  /** The session's skill. */
  namespace?: string;
  source?: string;
}

export interface Intent {
  id: string;
  fragmentId: string;
  name: string;
  namespace: string;
  subject: string | null;
  key: string | null;
  entities: Record<string, any>;
  confidence: number;
  evidence: number;
  validFrom: string;
  validTo: string | null;
  replacedBy: string | null;
  updateReason: string | null;
  source: string | null;
  createdAt: string;
  updatedAt: string;
  /** On what `remember` gives back: `created`, `updated`, `replaced`, `unchanged`, `rejected:existing_confidence_higher`. */
  outcome: string | null;
  previousId: string | null;
  changeId: string | null;
}

/** One thing that was said, seen, heard or done. Times are ISO 8601 text in UTC. */
export interface Fragment {
  id: string;
  sessionId: string;
  type: FragmentType;
  role: Role;
  speaker: string | null;
  content: string;
  data: Uint8Array<ArrayBuffer> | null;
  mediaType: string | null;
  metadata: Record<string, any>;
  moment: string | null;
  contextSignature: string;
  stateSignature: string | null;
  memoryType: number;
  scope: Scope;
  baseScore: number;
  decayRate: number;
  halfLifeHours: number;
  accessCount: number;
  lastAccessAt: string | null;
  expiresAt: string | null;
  pinned: boolean;
  sensitive: boolean;
  tokenCount: number;
  summary: string | null;
  source: string | null;
  happenedAt: string;
  storedAt: string;
  updatedAt: string;
  deletedAt: string | null;
  intents: Intent[];
}

/** Why a hit is where it is; weight × relevance × strength = score. */
export interface Why {
  tier: Tier;
  weight: number;
  relevance: number;
  strength: number;
  score: number;
  /** All tiers that matched. */
  tiers: Tier[];
  /** The same context signature, this branch of the conversation included. */
  branch: boolean;
  /** What relevance is made of. */
  signals: Record<string, any>;
  /** The times that the query named; `ambiguous` where a word has two readings. */
  times: { since: string; until: string; ambiguous: boolean }[];
  /** What strength is made of. */
  memory: { memoryScore: number; baseScore: number; accessBonus: number; decay: number; ageHours: number };
  provenance: {
    fragment: string;
    session: string;
    time: string;
    role: Role;
    speaker: string | null;
    skill: string | null;
    source: string | null;
  };
  asOf: string;
}

export interface Hit {
  fragment: Fragment;
  tier: Tier;
  score: number;
  why: Why;
  /** The provenance as one line for people. */
  cite: string;
  /** The other fragments of the same moment. */
  companions: Fragment[];
  /** With `around`: the turns before and after. */
  around: Fragment[];
}

export interface Found {
  fragment: Fragment;
  intent: Intent;
}

export interface SessionOptions extends CallOptions {
  userId: string;
  userName?: string;
  skill?: string;
  /** Resumes the session of this id, or creates it under it. */
  sessionId?: string;
  at?: Time;
  timeZone?: string;
}

export interface RememberFields {
  /** From the content. */
  type?: FragmentType;
  /** `user` */
  role?: Role;
  speaker?: string;
  /** When it happened; now. */
  at?: Time;
  /** Where the agent stands; the same state is recognised later, in other sessions too. */
  state?: Json;
  metadata?: JsonObject;
  mediaType?: string;
  intents?: readonly IntentInput[];
  /** 1 to 100; by the scope. */
  memoryType?: number;
  /** `episodic` */
  scope?: Scope;
  baseScore?: number;
  halfLifeHours?: number;
  decayRate?: number;
  /** 0 is never; `working` 3600. */
  ttlSeconds?: number;
  pinned?: boolean;
  sensitive?: boolean;
  source?: string;
  /** Groups what is stored together. */
  moment?: string;
  signatureWindow?: "minute" | "hour" | "day";
  updateReason?: string;
}

export interface RememberOptions extends RememberFields, CallOptions {
  /** A repeated request of the same id is answered and not applied again. */
  requestId?: string;
}

export interface RememberItem extends RememberFields {
  content: Content;
}

export interface RememberManyOptions extends CallOptions {
  moment?: string;
  requestId?: string;
}

/** What narrows a list: by when it happened, who said it, and how. */
export interface Filters {
  /** Inclusive. */
  since?: Time;
  /** Exclusive. */
  until?: Time;
  /** What was known then. */
  asOf?: Time;
  speaker?: string;
  role?: Role | readonly Role[];
  roles?: readonly Role[];
  type?: FragmentType | readonly FragmentType[];
  types?: readonly FragmentType[];
  skill?: string;
  /** For times without an offset, and for cites; UTC and the memory's. */
  timeZone?: string;
}

export interface LookOptions extends Filters, CallOptions {
  /** 10 */
  limit?: number;
  /** 0.3; 0 finds what has faded, too. */
  minScore?: number;
  metadata?: JsonObject;
  includeSensitive?: boolean;
  /** How many turns beside each hit; 0. */
  around?: number;
  /** Whether being found strengthens; true. */
  touch?: boolean;
  /** Whether `data` comes along; true. */
  includeData?: boolean;
}

export interface RecallOptions extends LookOptions {
  state?: Json;
  tiers?: Tier | readonly Tier[];
  signatureWindow?: "minute" | "hour" | "day";
}

export interface SearchOptions extends LookOptions {
  userId: string;
  query?: string;
  sessionId?: string;
}

/** A test of one entity; a plain value means equal. Names may be dotted paths. */
export interface EntityTest {
  $in?: readonly Json[];
  $gt?: Json;
  $gte?: Json;
  $lt?: Json;
  $lte?: Json;
  $exists?: boolean;
  $contains?: Json;
}

export interface FindOptions extends Filters, CallOptions {
  userId: string;
  intent?: string;
  key?: string;
  subject?: string;
  namespace?: string;
  entities?: { readonly [path: string]: Json | EntityTest };
  minConfidence?: number;
  /** Replaced values as well. */
  history?: boolean;
  sessionId?: string;
  /** 50 */
  limit?: number;
  cursor?: string | null;
  includeData?: boolean;
}

export interface TimelineOptions extends Filters, CallOptions {
  userId: string;
  /** `newest` */
  order?: "newest" | "oldest";
  sessionId?: string;
  /** 50 */
  limit?: number;
  cursor?: string | null;
  includeData?: boolean;
}

export interface TrashOptions extends CallOptions {
  userId: string;
  /** 50 */
  limit?: number;
  cursor?: string | null;
}

/** Says which fragments of a user; with none of them, `all: true` must say so. */
export interface Selector extends CallOptions {
  userId: string;
  ids?: readonly string[];
  sessionId?: string;
  since?: Time;
  until?: Time;
  /** All of its words. */
  query?: string;
  type?: FragmentType | readonly FragmentType[];
  all?: boolean;
  /** Only tells which. */
  preview?: boolean;
}

export interface Selected {
  count: number;
  ids: string[];
}

export interface ExportOptions extends CallOptions {
  /** Without it, everything. */
  userId?: string;
  /** false */
  includeSensitive?: boolean;
}

export interface ImportOptions extends CallOptions {
  /** Only counts. */
  dryRun?: boolean;
  /** Gives all of a one-user file to this user. */
  owner?: string;
}

export interface ImportCounts {
  /** New here. */
  added: number;
  /** Brought up to the later state that the file knows. */
  updated: number;
  /** Left as they are. */
  kept: number;
}

export interface ImportReport {
  dryRun: boolean;
  users: ImportCounts;
  sessions: ImportCounts;
  fragments: ImportCounts;
  intents: ImportCounts;
}

export interface Metrics {
  users: number;
  sessions: number;
  fragments: number;
  byType: Partial<Record<FragmentType, number>>;
  byScope: Partial<Record<Scope, number>>;
  forgotten: number;
  intents: number;
  /** Of the whole database. */
  bytes: number;
}

export interface CheckReport {
  ok: boolean;
  problems: string[];
}

/** An open memory; made by {@link openMemory}. Calls are served one after the other, in the order they were made. */
export interface Memory {
  readonly name: string;
  /** How it is kept; up to date with the last answered call. */
  readonly storage: StorageState;

  /**
   * Listen; gives back a function that ends it.
   * ```js
   * const off = memory.on("change", ({ verb, ids }) => refresh(ids));
   * ```
   */
  on<E extends keyof MemoryEvents>(event: E, listener: (data: MemoryEvents[E]) => void): () => void;

  /**
   * Ask the browser to keep the memory for good, best from a click of the person; some browsers ask in turn.
   * ```js
   * const { persisted } = await memory.persist();
   * ```
   */
  persist(options?: CallOptions): Promise<StorageState>;

  /**
   * Start a session of a user, or resume the one under `sessionId`.
   * ```js
   * const session = await memory.startSession({ userId: "u_1", userName: "Ann", skill: "booking" });
   * ```
   */
  startSession(options: SessionOptions): Promise<Session>;

  /**
   * What answers a query in the whole history of one user, best first.
   * ```js
   * const hits = await memory.search({ userId: "u_1", query: "window seat" });
   * ```
   */
  search(options: SearchOptions): Promise<Hit[]>;

  /**
   * Current intents and facts that meet all conditions, newest first.
   * ```js
   * const found = await memory.find({ userId: "u_1", intent: "book_flight", entities: { "price.eur": { $lt: 200 } } });
   * ```
   */
  find(options: FindOptions): Promise<Page<Found>>;

  /**
   * A user's fragments by when they happened.
   * ```js
   * const page = await memory.timeline({ userId: "u_1", limit: 20 });
   * const next = page.cursor && await memory.timeline({ userId: "u_1", limit: 20, cursor: page.cursor });
   * ```
   */
  timeline(options: TimelineOptions): Promise<Page<Fragment>>;

  /**
   * Take fragments out of sight; `restore` brings them back.
   * ```js
   * const { count } = await memory.forget({ userId: "u_1", query: "old address", preview: true });
   * ```
   */
  forget(selector: Selector): Promise<Selected>;

  /**
   * Bring forgotten fragments back.
   * ```js
   * await memory.restore({ userId: "u_1", ids });
   * ```
   */
  restore(selector: Selector): Promise<Selected>;

  /**
   * Forgotten fragments, latest first.
   * ```js
   * const gone = await memory.trash({ userId: "u_1" });
   * ```
   */
  trash(options: TrashOptions): Promise<Page<Fragment>>;

  /**
   * One user's memory, or everything, as a JSON file.
   * ```js
   * link.href = URL.createObjectURL(await memory.exportJSON({ userId: "u_1" }));
   * ```
   */
  exportJSON(options?: ExportOptions): Promise<Blob>;

  /**
   * Merge a JSON file into this memory, whole or not at all; twice changes nothing more.
   * ```js
   * const { fragments } = await memory.importJSON(input.files[0], { dryRun: true });   // fragments.added
   * ```
   */
  importJSON(file: Blob | string | object, options?: ImportOptions): Promise<ImportReport>;

  /**
   * The database as a plain SQLite file.
   * ```js
   * const file = await memory.exportImage();
   * ```
   */
  exportImage(options?: CallOptions): Promise<Blob>;

  /**
   * Replace everything by an exported image.
   * ```js
   * await memory.importImage(input.files[0]);
   * ```
   */
  importImage(image: Blob | ArrayBuffer | ArrayBufferView, options?: CallOptions): Promise<Record<string, any>>;

  /**
   * Counts, of one user or of everything.
   * ```js
   * const { fragments, byType } = await memory.metrics({ userId: "u_1" });
   * ```
   */
  metrics(options?: CallOptions & { userId?: string }): Promise<Metrics>;

  /**
   * Check the database and its text index.
   * ```js
   * const { ok, problems } = await memory.check();
   * ```
   */
  check(options?: CallOptions): Promise<CheckReport>;

  /**
   * Make the text index anew from the fragments.
   * ```js
   * if (!(await memory.check()).ok) await memory.reindex();
   * ```
   */
  reindex(options?: CallOptions): Promise<{ fragments: number }>;

  /**
   * Give a sealed memory another passphrase; one record is written, what is remembered stays sealed as it is.
   * ```js
   * await memory.changePassphrase({ passphrase: old.value, newPassphrase: next.value });
   * ```
   */
  changePassphrase(options: CallOptions & { passphrase: string; newPassphrase: string }): Promise<void>;

  /**
   * Answer the calls that were made, end the worker, free the name. Closing twice is closing once.
   * ```js
   * await memory.close();
   * ```
   */
  close(): Promise<void>;

  /** The same, for `await using memory = await openMemory();`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** One conversation or task of one user; made by {@link Memory.startSession}. */
export interface Session {
  readonly id: string;
  readonly userId: string;
  /** Empty for none. */
  readonly skill: string;

  /**
   * Store one thing; fulfils when it is on disk.
   * ```js
   * const fragment = await session.remember("I want to fly to Oslo", {
   *   speaker: "Ann", state: { step: "destination" },
   *   intents: [{ name: "book_flight", entities: { destination: "OSL" }, confidence: 0.92 }],
   * });
   * await session.remember(file, { metadata: { width: 1024, height: 768 } });   // a picture
   * await session.remember({ lat: 59.91, lng: 10.75, label: "Oslo" });
   * ```
   */
  remember(content: Content, options?: RememberOptions): Promise<Fragment>;

  /**
   * Store many, all or none, in one transaction; the answers are in order.
   * ```js
   * await session.rememberMany(turns.map(({ text, who, at }) => ({ content: text, speaker: who, at })));
   * ```
   */
  rememberMany(items: readonly RememberItem[], options?: RememberManyOptions): Promise<Fragment[]>;

  /**
   * What answers a query, best first; without one: the same context, the last hour, the newest.
   * ```js
   * const hits = await session.recall("where to?", { state: { step: "destination" }, limit: 5 });
   * ```
   */
  recall(query?: string, options?: RecallOptions): Promise<Hit[]>;

  /**
   * End the session; it can be resumed by its id.
   * ```js
   * await session.end();
   * ```
   */
  end(options?: CallOptions & { at?: Time }): Promise<void>;
}

/** The closed set of error codes; the same in Python. What to do about each: docs/errors.md. */
export type ErrorCode =
  | "invalid_argument"
  | "user_required"
  | "not_found"
  | "empty_selector"
  | "too_large"
  | "unsupported"
  | "unsupported_format"
  | "schema_newer"
  | "import_invalid"
  | "corrupt_image"
  | "quota_exceeded"
  | "storage_lost"
  | "storage_blocked"
  | "outdated"
  | "already_open"
  | "owner_lost"
  | "insecure_context"
  | "boot_failed"
  | "timeout"
  | "aborted"
  | "closed"
  | "read_only"
  | "wrong_passphrase"
  | "permission_denied"
  | "rate_limited"
  | "internal";

/**
 * All error codes.
 * ```js
 * const known = CODES.includes(error.code);
 * ```
 */
export const CODES: readonly ErrorCode[];

/**
 * What every call rejects with.
 * ```js
 * try {
 *   await session.remember(text);
 * } catch (error) {
 *   if (error instanceof PyMemoryError && error.code === "quota_exceeded") offerExport(error.details);
 *   else throw error;
 * }
 * ```
 */
export class PyMemoryError extends Error {
  constructor(code: ErrorCode, message: string, details?: Record<string, unknown>);
  readonly code: ErrorCode;
  readonly details: Record<string, unknown>;
}

/**
 * The runtime did not start; its code is `boot_failed`.
 * ```js
 * openMemory().catch((error) => {
 *   if (error instanceof BootError) show(`${error.details.stage}: ${error.details.hint}`);
 * });
 * ```
 */
export class BootError extends PyMemoryError {
  constructor(message: string, details: BootError["details"]);
  readonly code: "boot_failed";
  readonly details: { stage: Stage; url: string | null; hint: string; reason?: string };
}
