import { z } from 'zod'
import { cursorSchema } from './frames.ts'
import { eventSchema, promptResultSchema, sessionInfoSchema } from './rest.ts'

/** Views of a session over HTTP: the session itself, its tree, its context, its recording. */

const entryId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)
const seq = z.coerce.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER)
const limit = z.coerce.number().int().min(1).max(1000)

export const sessionPlaceSchema = z.enum(['active', 'archive', 'trash'])
export const movedSessionSchema = z.object({ id: z.string(), place: sessionPlaceSchema })

/** One session with its mutable properties. The ETag covers this body. */
export const sessionDetailsSchema = sessionInfoSchema.extend({
  head: cursorSchema,
  leaf_id: z.string().nullable(),
  /** The open run. */
  run_id: z.string().nullable(),
  /** Why the session cannot be written here, for example because another process writes it. */
  read_only: z.string().optional(),
  model: z.object({ provider: z.string(), model_id: z.string() }).nullable(),
  thinking_level: z.string().nullable(),
  /** The permission mode; null if the session is not open. */
  mode: z.string().nullable(),
  usage: z.object({
    turns: z.int(),
    tool_calls: z.int(),
    run_ms: z.number(),
    tokens: z.number(),
    cost: z.number(),
  }),
})
export type SessionDetails = z.infer<typeof sessionDetailsSchema>

/** A new session, with the result of its first prompt. */
export const sessionCreatedSchema = sessionDetailsSchema.extend({ prompt: promptResultSchema.optional() })

/** The stream continues after the event id `<seq>-<crc>`. The header `Last-Event-ID` takes precedence over `after`. */
export const streamQuerySchema = z.object({
  after: z.string().max(100).optional(),
  /** Maximum number of entries in a snapshot. */
  window: z.coerce.number().int().min(1).max(500).optional(),
  /** `false`: send no text in flight. */
  deltas: z.enum(['true', 'false']).optional(),
  client_id: entryId.optional(),
})

export const treeNodeSchema = z.object({
  id: z.string(),
  parent_id: z.string().nullable(),
  seq: z.int(),
  type: z.string(),
  timestamp: z.string(),
  role: z.string().optional(),
  /** The start of its text. */
  preview: z.string(),
  label: z.string().optional(),
})
export type TreeNodeSummary = z.infer<typeof treeNodeSchema>

/** The nodes after a line or before one; by default the newest. */
export const treeQuerySchema = z.object({
  after: seq.optional(),
  before: z.coerce.number().int().positive().max(Number.MAX_SAFE_INTEGER).optional(),
  limit: limit.optional(),
})

/** Nodes in log order: a parent may lie in an earlier window. */
export const treeWindowSchema = z.object({
  nodes: z.array(treeNodeSchema),
  leaf_id: z.string().nullable(),
  has_before: z.boolean(),
  has_after: z.boolean(),
})

/**
 * The entries around a place, of all branches: the newest `before` entries before it, and the first `after` entries from
 * it on. The place is a line or an entry; by default the end. A line is found without reading the log.
 */
export const entryWindowQuerySchema = z.object({
  seq: seq.optional(),
  entry_id: entryId.optional(),
  before: z.coerce.number().int().min(0).max(500).optional(),
  after: z.coerce.number().int().min(0).max(500).optional(),
})

/** Entries as in the log, in its order: a parent may lie in an earlier window. */
export const entryWindowSchema = z.object({
  entries: z.array(eventSchema),
  leaf_id: z.string().nullable(),
  head: cursorSchema,
  /** The `seq` of the window before this one, to be asked for with `after=0`; null at the beginning. */
  previous: z.int().nullable(),
  /** The `seq` of the window after this one, to be asked for with `before=0`; null at the end. */
  next: z.int().nullable(),
})

export const contextQuerySchema = z.object({
  /** The entry whose context is returned. Default: the leaf. */
  entry_id: entryId.optional(),
})

export const contextSchema = z.object({
  entry_id: z.string().nullable(),
  messages: z.array(
    z.object({
      entry_id: z.string(),
      /** Why it is included: it is on the path, or was derived from it. */
      reason: z.enum(['path', 'summary', 'missing-result', 'orphan-result']),
      because: z.string(),
      message: z.looseObject({ role: z.string() }),
    }),
  ),
  system: z
    .object({ entry_id: z.string().nullable(), prompt: z.string(), tools: z.array(z.unknown()), sha256: z.string() })
    .nullable(),
  model: z.object({ entry_id: z.string().nullable(), provider: z.string(), model_id: z.string() }).nullable(),
  thinking_level: z.object({ entry_id: z.string().nullable(), level: z.string() }).nullable(),
  /** Repairs that make a provider accept the request, as sentences. */
  repairs: z.array(z.string()),
})

/** The request behind an answer: as recorded, and rebuilt from the log. */
export const entryRequestSchema = z.object({
  entry_id: z.string(),
  recorded: z.object({
    sha256: z.string(),
    adapter: z.string(),
    adapter_version: z.string(),
    params: z.record(z.string(), z.unknown()).optional(),
    leaf_id: z.string().nullable(),
  }),
  model: z.object({ provider: z.string(), model_id: z.string(), thinking_level: z.string().nullable() }),
  /** False if an extension changed the request: then the log alone cannot reproduce it. */
  is_exact: z.boolean(),
  /** Whether the rebuilt request has the recorded hash. */
  verified: z.boolean(),
  /** A sentence with the reason. */
  reason: z.string(),
  context: contextSchema,
})

export const comparisonQuerySchema = z.object({
  left: entryId,
  right: entryId,
  /** `true`: with the diffs of the files. */
  diff: z.enum(['true', 'false']).optional(),
  /** Only this file. */
  path: z.string().max(4096).optional(),
})

const comparedSideSchema = z.object({
  leaf_id: z.string(),
  entry_count: z.int(),
  message_count: z.int(),
  /** From after the common ancestor to the leaf; if there are very many, the newest. */
  entries: z.array(treeNodeSchema),
  usage: z.object({ input_tokens: z.number(), output_tokens: z.number(), total_tokens: z.number(), cost: z.number() }),
  /** How long its runs took, without the time between them. */
  run_ms: z.number(),
  /** Results of commands that judge its files, oldest first. */
  checks: z.array(
    z.object({ command: z.string(), exit_code: z.int(), duration_ms: z.number(), timestamp: z.string() }),
  ),
})
const fileDiffSchema = z.object({
  /** Relative to the folder of the session. */
  path: z.string(),
  change: z.enum(['added', 'changed', 'removed']),
  added_lines: z.int(),
  removed_lines: z.int(),
  is_binary: z.boolean(),
  /** A unified diff; only with `diff=true`. */
  patch: z.string().optional(),
  /** The diff is incomplete or missing, because all diffs together are too long. */
  is_cut: z.literal(true).optional(),
})
export const comparisonSchema = z.object({
  common_ancestor: z.string().nullable(),
  left: comparedSideSchema,
  right: comparedSideSchema,
  /** How the files of the left side became those of the right. Only with the role `drive`, and if files are recorded. */
  files: z
    .object({
      /** Why they cannot be compared, as a sentence. */
      problem: z.string().optional(),
      /** By path; at most 1000. */
      changes: z.array(fileDiffSchema),
      changed_count: z.int(),
      added_lines: z.int(),
      removed_lines: z.int(),
    })
    .optional(),
})

/** What a rewind did, or would do. Empty if it took effect earlier and is not known any more. */
export const rewoundSchema = z.object({
  /** The leaf afterwards. */
  leaf_id: z.string().nullish(),
  /** The text of the message that the conversation went back to, to be changed and sent again. */
  text: z.string().optional(),
  /** Absent if only the conversation goes back. */
  files: z
    .object({
      /** Why no file can go back, as a sentence. */
      problem: z.string().optional(),
      changes: z.array(
        z.object({
          /** Relative to the folder of the session. */
          path: z.string(),
          /** What happens to the file. */
          change: z.enum(['added', 'changed', 'removed']),
          /** `kept`: only others changed it. `conflict`: the agent and others did, and it stays. */
          action: z.enum(['restored', 'kept', 'conflict', 'merged']),
          /** A conflict that can be merged, unless both changed the same lines. */
          can_merge: z.literal(true).optional(),
        }),
      ),
      /** Someone changed these meanwhile. They stay as they are. */
      skipped: z.array(z.string()),
      /** What someone wrote to a file while it was being replaced, and where the copy is. */
      kept_copies: z.array(z.object({ path: z.string(), copy: z.string() })),
    })
    .optional(),
})
const keptFileSchema = z.object({
  /** Relative to the folder of the session, or to the home folder. */
  path: z.string(),
  size_bytes: z.number(),
  /** The beginning of its text, without secrets. Absent if it is not text. */
  text: z.string().optional(),
  is_cut: z.literal(true).optional(),
  /** It is a link to this path. */
  target: z.string().optional(),
})
/** What the sandbox took back, and what commands wrote to the home folder. */
export const blockedWritesSchema = z.object({
  writes: z.array(
    z.object({
      id: z.string(),
      /** Relative to the folder of the session. */
      path: z.string(),
      /** The call that made it. Absent: a hook did. */
      call_id: z.string().optional(),
      /** The first of its files. */
      files: z.array(keptFileSchema),
      file_count: z.int(),
      /** Something is at its path now, so it cannot be applied. */
      is_occupied: z.boolean(),
    }),
  ),
  /** Absent if the session has no sandbox. Kept for later commands in `folder`, and never in the home folder itself. */
  home: z.object({ folder: z.string(), files: z.array(keptFileSchema), file_count: z.int() }).optional(),
})
export type WireBlockedWrites = z.infer<typeof blockedWritesSchema>

export type WireRewound = z.infer<typeof rewoundSchema>

const time = z.iso.datetime({ offset: true })

export const searchQuerySchema = z.object({
  q: z.string().min(1).max(1000),
  limit: z.coerce.number().int().min(1).max(200).optional(),
  cursor: z.string().max(1000).optional(),
  /** Only sessions of this folder. */
  cwd: z.string().max(4096).optional(),
  session_id: z.string().max(64).optional(),
  /** The place of the sessions. Default: `active`. */
  place: z.enum(['active', 'archive', 'trash']).optional(),
  /** The role of a message or the type of another entry; several are separated by commas. */
  role: z.string().max(500).optional(),
  /** Only entries of this time or later. */
  since: time.optional(),
  /** Only entries before this time. */
  until: time.optional(),
})
export const searchResultSchema = z.object({
  hits: z.array(
    z.object({
      session_id: z.string(),
      entry_id: z.string(),
      seq: z.int(),
      timestamp: z.string(),
      role: z.string(),
      snippet: z.string(),
      /** Where the words are in the snippet, in UTF-16 code units. */
      matches: z.array(z.object({ start: z.int().nonnegative(), end: z.int().nonnegative() })).optional(),
    }),
  ),
  /** Absent on the last page. */
  cursor: z.string().optional(),
})

/** Days end at midnight of this time zone, by its IANA name. */
export const usageQuerySchema = z.object({
  days: z.coerce.number().int().min(1).max(366).optional(),
  time_zone: z.string().max(64).optional(),
  /** The place of the sessions. `all`: active and archived. Default: `active`. */
  place: z.enum(['active', 'archive', 'all']).optional(),
})

const usageCountsSchema = z.object({
  calls: z.int(),
  input_tokens: z.number(),
  output_tokens: z.number(),
  cache_read_tokens: z.number(),
  cache_write_tokens: z.number(),
  /** In US dollars. */
  cost: z.number(),
})
/** Calls that a fork copied count once. */
export const usageReportSchema = z.object({
  /** The first day, such as `2026-11-01`. */
  since: z.string(),
  /** In order; days without a call are absent. */
  days: z.array(usageCountsSchema.extend({ day: z.string() })),
  /** The most expensive first. */
  models: z.array(usageCountsSchema.extend({ provider: z.string(), model_id: z.string() })),
  /** The most expensive first; at most 100. */
  sessions: z.array(
    usageCountsSchema.extend({ id: z.string(), name: z.string(), is_archived: z.literal(true).optional() }),
  ),
  total: usageCountsSchema,
})
export type UsageReport = z.infer<typeof usageReportSchema>

export const playbackTypeSchema = z.enum([
  'session_start',
  'session_end',
  'user_prompt',
  'agent_message',
  'agent_thought',
  'tool_call',
  'tool_call_update',
  'plan',
  'permission',
  'file_read',
  'file_write',
  'error',
])

/** Start at an index, a line or a time. */
export const playerQuerySchema = z.object({
  index: seq.optional(),
  seq: seq.optional(),
  time: z.iso.datetime({ offset: true }).optional(),
  /** Separated by commas. */
  types: z.string().max(500).optional(),
  limit: limit.optional(),
  /** For NDJSON: the playback speed, as a multiple of the recorded pace. */
  speed: z.coerce.number().positive().max(1_000_000).optional(),
})
export const playerPageSchema = z.object({
  events: z.array(z.looseObject({ type: playbackTypeSchema, seq: z.int(), timestamp: z.string() })),
  /** Total number of events. */
  length: z.int(),
  /** The start of the next page; `length` at the end. */
  position: z.int(),
})
