import { z } from 'zod'
import { operations } from './command.ts'

/** Data around sessions: folders and files to choose from, settings, agents, commands. */

const path = z.string().min(1).max(4096)
const limit = z.coerce.number().int().min(1).max(200)

export const readinessSchema = z.object({ status: z.enum(['ready', 'not-ready']), reason: z.string().optional() })

export const fileQuerySchema = z.object({
  /** The text typed so far, relative to the session's folder. */
  q: z.string().max(4096).optional(),
  limit: limit.optional(),
})
export const fileListSchema = z.object({
  files: z.array(z.object({ path: z.string(), type: z.enum(['file', 'folder']) })),
  has_more: z.boolean(),
})

export const folderQuerySchema = z.object({ path: path.optional() })
/** Without a path these are the roots; nothing outside of them can be chosen. */
export const folderListSchema = z.object({
  path: z.string().nullable(),
  parent: z.string().nullable(),
  folders: z.array(z.object({ name: z.string(), path: z.string() })),
  has_more: z.boolean(),
})

export const settingsQuerySchema = z.object({ cwd: path.optional() })
export const settingListSchema = z.object({
  settings: z.array(
    z.object({
      key: z.string(),
      value: z.unknown(),
      origin: z.object({
        layer: z.string(),
        file: z.string().optional(),
        line: z.int().optional(),
        variable: z.string().optional(),
      }),
    }),
  ),
  problems: z.array(z.string()),
})

/** Null removes a setting. No other setting can be written over the network. */
export const patchSettingsSchema = z.strictObject({
  /** As `provider/id`. */
  model: z.string().min(1).max(400).nullable().optional(),
  thinking_level: operations.set_thinking_level.shape.level.nullable().optional(),
  theme: z.enum(['dark', 'light', 'high-contrast']).nullable().optional(),
})

export const agentListSchema = z.object({
  agents: z.array(z.object({ id: z.string(), name: z.string(), description: z.string().optional() })),
})

export const slashCommandListSchema = z.object({
  commands: z.array(z.object({ name: z.string(), description: z.string() })),
})

/** A command that the agent runs in the background. */
export const jobSchema = z.object({
  id: z.string(),
  /** Without secrets. Empty if it is not known. */
  command: z.string(),
  /** When it went to the background. */
  started_at: z.string(),
  /** `lost`: it is gone, and its outcome was not recorded. */
  status: z.enum(['running', 'ended', 'lost']),
  exit: z
    .object({
      cause: z.enum(['exited', 'timed-out', 'stopped', 'overflowed', 'not-started']),
      code: z.int().nullable(),
      signal: z.string().nullable(),
      duration_ms: z.number(),
    })
    .optional(),
})
export const jobListSchema = z.object({ jobs: z.array(jobSchema) })

export const jobQuerySchema = z.object({
  /** Waits for output after this offset, or for the end of the job. */
  after: z.coerce.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER).optional(),
  /** In seconds. */
  wait: z.coerce.number().int().min(0).max(60).optional(),
  /** At most this many of the newest bytes. */
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(1024 * 1024)
    .optional(),
})
export const jobOutputSchema = z.object({
  job: jobSchema,
  /** The newest output, as plain text. */
  output: z.string(),
  /** Offset of the next byte: `after` of the next request. */
  end: z.int(),
  /** Whether older output was left out. */
  is_cut: z.boolean(),
})

const workspacePath = z.string().min(1).max(4096)

/** Relative to the session's folder. */
export const filePathQuerySchema = z.object({ path: workspacePath })

export const fileContentQuerySchema = z.object({
  path: workspacePath,
  /** In bytes: `next_offset` of the part before. */
  offset: z.coerce.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER).optional(),
  /** In bytes. */
  limit: z.coerce
    .number()
    .int()
    .min(16)
    .max(1024 * 1024)
    .optional(),
})

export const fileContentSchema = z.object({
  path: z.string(),
  /** Of the whole file, in bytes. */
  size: z.int().nonnegative(),
  modified: z.string(),
  type: z.enum(['text', 'image', 'binary']),
  media_type: z.string().optional(),
  encoding: z.enum(['utf-8', 'utf-16le', 'utf-16be']).optional(),
  /** Only of a text, without its byte order mark. It ends with a complete character. */
  content: z.string().optional(),
  /** False if bytes are not valid in this encoding; U+FFFD stands for them. */
  is_exact: z.boolean().optional(),
  offset: z.int().nonnegative().optional(),
  /** Null at the end of the file. */
  next_offset: z.int().nonnegative().nullish(),
})

const gitChangeSchema = z.enum(['unmodified', 'modified', 'added', 'deleted', 'renamed', 'copied', 'type-changed'])

export const gitStatusSchema = z.object({
  /** Absent if no branch is checked out. */
  branch: z.string().optional(),
  /** Absent before the first commit. */
  commit: z.string().optional(),
  upstream: z.object({ name: z.string(), ahead: z.int(), behind: z.int() }).optional(),
  files: z.array(
    z.object({
      path: z.string(),
      /** The former path of a renamed or copied file. */
      original_path: z.string().optional(),
      /** The index against HEAD. */
      staged: gitChangeSchema,
      /** The working tree against the index. */
      unstaged: gitChangeSchema,
      is_untracked: z.boolean(),
      is_conflicted: z.boolean(),
    }),
  ),
  /** There are more files than are listed. */
  is_cut: z.boolean(),
})

/** `all`: the working tree against HEAD. `unstaged`: against the index. `staged`: the index against HEAD. */
export const gitDiffQuerySchema = z.object({
  path: workspacePath,
  scope: z.enum(['all', 'staged', 'unstaged']).optional(),
})

export const gitDiffSchema = z.object({
  path: z.string(),
  original_path: z.string().optional(),
  /** A unified diff; empty if nothing has changed or the file is binary. */
  patch: z.string(),
  added: z.int().nonnegative(),
  removed: z.int().nonnegative(),
  is_binary: z.boolean(),
  is_untracked: z.boolean(),
  is_cut: z.boolean(),
})

/** The server's public key, in base64url, for `PushManager.subscribe`. */
export const pushKeySchema = z.object({ public_key: z.string() })

/** The members of `PushSubscription.toJSON()` that a server needs. */
export const pushSubscribeSchema = z.strictObject({
  endpoint: z.url().max(2000),
  keys: z.strictObject({ p256dh: z.string().max(200), auth: z.string().max(100) }),
})

export const pushSubscriptionSchema = z.object({
  id: z.string(),
  /** The origin of the endpoint. The rest of it is a secret. */
  service: z.string(),
  created_at: z.string(),
})
export const pushSubscriptionListSchema = z.object({ subscriptions: z.array(pushSubscriptionSchema) })

/** The content of a push message: what a session needs from its user. */
export const pushMessageSchema = z.object({
  session_id: z.string(),
  /** Absent if the session has no name. */
  name: z.string().optional(),
  needs: z.enum(['permission', 'question', 'finished', 'failed']),
  /** The request to answer. */
  request_id: z.string().optional(),
})
export type PushMessage = z.infer<typeof pushMessageSchema>

/** The tool hosts that are connected. The tools of a session can work in one of their workspaces. */
export const toolHostListSchema = z.object({
  tool_hosts: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      platform: z.string(),
      workspaces: z.array(
        z.object({
          name: z.string(),
          /** Absolute, on the host. */
          folder: z.string(),
          /** The most that the host allows. */
          mode: z.string(),
          has_sandbox: z.boolean(),
        }),
      ),
    }),
  ),
})

export const workspaceResultSchema = z.object({ host: z.string(), workspace: z.string(), folder: z.string() })

export const healthSchema = z.object({ status: z.literal('ok'), version: z.string().optional() })

/** `protocol` is the subprotocol of the socket. */
export const versionSchema = z.object({ name: z.string(), version: z.string().optional(), protocol: z.string() })

export const erasedSessionSchema = z.object({
  id: z.string(),
  /** Sessions that still contain copies of its entries. */
  forks: z.array(z.string()),
})
export type ErasedSession = z.infer<typeof erasedSessionSchema>

export const modelSchema = z.looseObject({
  provider: z.string(),
  model_id: z.string(),
  name: z.string().optional(),
  context_window: z.int().positive().optional(),
  max_output_tokens: z.int().positive().optional(),
  /** Supported levels, lowest first. */
  thinking_levels: z.array(z.string()).optional(),
  images: z.boolean().optional(),
  /** Whether a key is configured; never the key itself. */
  key: z.enum(['found', 'missing', 'not-needed']).optional(),
})

export const modelListSchema = z.object({ models: z.array(modelSchema) })
export type WireModelList = z.infer<typeof modelListSchema>
