import { z } from 'zod'

/** A request that waits for an answer: a permission for a call, or a question of the agent. */
export const permissionSchema = z.looseObject({
  request_id: z.string(),
  run_id: z.string().optional(),
  call_id: z.string().optional(),
  tool: z.string().optional(),
  title: z.string().optional(),
  input: z.unknown().optional(),
  options: z
    .array(z.looseObject({ option_id: z.string(), label: z.string().optional(), kind: z.string().optional() }))
    .optional(),
  seq: z.int().optional(),
  timestamp: z.string().optional(),
})

/** Level-triggered: only the latest value of a key counts. */
export const stateKeys = [
  'run',
  'queue',
  'config',
  'usage',
  'presence',
  'plan',
  'commands',
  'permissions',
  'read_only',
  'language_servers',
] as const
export type StateKey = (typeof stateKeys)[number]

/** Where the tools of a session work. `problem`: why they cannot be used now. */
export const workspacePlaceSchema = z.object({
  name: z.string(),
  host: z.string(),
  /** Absolute, on the host. */
  folder: z.string(),
  problem: z.string().exactOptional(),
})

const waitingForSchema = z.discriminatedUnion('type', [
  /** A run was interrupted because its process died. */
  z.object({ type: z.literal('resume'), run_id: z.string() }),
  z.object({
    type: z.literal('auto_retry_start'),
    run_id: z.string(),
    attempt: z.int(),
    delay_ms: z.number(),
    error: z.object({ kind: z.string(), message: z.string() }),
  }),
  /** Lines wait for the storage, since this time. */
  z.object({ type: z.literal('storage'), run_id: z.string().nullable(), since: z.string() }),
  /** A compaction, or a tool host that cannot be reached. */
  z.object({
    type: z.enum(['auto_compaction_start', 'tool_host']),
    run_id: z.string().nullable(),
    reason: z.string(),
  }),
])

/** A queued message. If not all fit into a frame, long texts are truncated; REST and the log have them in full. */
const listedMessageSchema = z.looseObject({
  id: z.string(),
  delivery: z.enum(['steer', 'follow-up']),
  message: z.string(),
  truncated: z.literal(true).optional(),
  image_ids: z.array(z.string()),
  queued_at: z.string(),
  client_id: z.string().optional(),
  held: z.boolean(),
})

/** The schema of each key's value. The server is typed by it, and the client parses with it. */
export const stateValueSchemas = {
  run: z.object({
    run_id: z.string().nullable(),
    is_busy: z.boolean(),
    /** A newer server may send a kind that this client does not know. */
    waiting_for: waitingForSchema.nullable().catch(null),
    /** Why the open run does not continue, such as `storage-failed`. */
    stopped: z.object({ type: z.string(), reason: z.string() }).optional(),
  }),
  queue: z.object({
    /** Number of queued follow-ups. */
    queue_length: z.int().nonnegative(),
    /** Total number of messages, steers included: `messages` may hold only the first of them. */
    total: z.int().nonnegative(),
    hold: z.object({ reason: z.string() }).nullable(),
    messages: z.array(listedMessageSchema),
  }),
  config: z.looseObject({
    model: z.object({ provider: z.string(), model_id: z.string() }).nullish(),
    thinking_level: z.string().nullish(),
    mode: z.string().nullish(),
    /** Why the agent uses this mode instead of `sandboxed`: the sandbox does not work. */
    mode_reason: z.string().nullish(),
    /** The session's last model cannot be opened; `model` replaces it. */
    missing_model: z.object({ provider: z.string(), model_id: z.string(), reason: z.string() }).nullish(),
    /** A rewind of the files was interrupted: it has to be finished or undone. */
    open_restore: z.string().nullish(),
    /** Absent if they work on the server. */
    workspace: workspacePlaceSchema.exactOptional(),
  }),
  usage: z.object({
    turns: z.int(),
    tool_calls: z.int(),
    run_ms: z.number(),
    tokens: z.number(),
    /** In US dollars. */
    cost: z.number(),
  }),
  presence: z.array(
    z.object({
      id: z.string(),
      name: z.string().optional(),
      kind: z.string().optional(),
      visibility: z.enum(['visible', 'hidden']),
      typing: z.boolean(),
    }),
  ),
  plan: z.array(z.object({ text: z.string(), status: z.string() })),
  commands: z.array(z.object({ name: z.string(), description: z.string() })),
  /** Without `input` if that did not fit into a frame; REST and the log have it in full. */
  permissions: z.array(permissionSchema.extend({ truncated: z.literal(true).optional() })),
  /** Set while another process writes the session: it can be watched, and commands are rejected. */
  read_only: z
    .object({
      reason: z.string(),
      owner: z.object({ host: z.string().optional(), process: z.string().optional() }).optional(),
    })
    .nullable(),
  /** Those that have been started for the session's folder, with what they last found in all files. */
  language_servers: z.array(
    z.object({
      name: z.string(),
      status: z.enum(['starting', 'running', 'failed']),
      /** Why it has failed. */
      problem: z.string().exactOptional(),
      /** Only if it has failed: from when on the next edit starts it again. Null: it has failed too often. */
      retry_at: z.string().nullable().exactOptional(),
      errors: z.int().nonnegative(),
      warnings: z.int().nonnegative(),
    }),
  ),
} as const satisfies Record<StateKey, z.ZodType>

export type WireStateValues = { [Key in StateKey]: z.output<(typeof stateValueSchemas)[Key]> }
