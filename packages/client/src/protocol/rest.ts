import { z } from 'zod'
import { cursorSchema } from './frames.ts'
import { permissionSchema, workspacePlaceSchema } from './state-values.ts'

/**
 * Schemas of HTTP responses; those of requests are in `requests.ts`. The server validates by them and generates its OpenAPI document from
 * them.
 */

const sha256 = z.string().regex(/^[0-9a-f]{64}$/)

export const sessionStatusSchema = z.enum(['idle', 'running', 'requires_action', 'ended'])

/** `interrupted`: the process of the run has ended. `storage-failed`: its lines could not be stored. */
const stoppedRunSchema = z.object({ type: z.string(), reason: z.string() })

export const sessionInfoSchema = z.object({
  id: z.string(),
  name: z.string(),
  created: z.string(),
  /** Time of the last message. */
  modified: z.string(),
  message_count: z.int().nonnegative(),
  cwd: z.string().optional(),
  /**
   * Set if the tools work on a tool host; `cwd` is the folder on the server. In a list only for sessions that are open
   * there.
   */
  workspace: workspacePlaceSchema.optional(),
  parent_session: z.string().optional(),
  subagent: z.literal(true).optional(),
  /** Start of the first user message, shown for sessions without a name. */
  first_text: z.string().optional(),
  status: sessionStatusSchema,
  /** Set if a run is open but no process works on it; `status` is `idle` then. */
  stopped: stoppedRunSchema.optional(),
  /** Set if the last run failed and no other one has started. */
  failed: z.object({ reason: z.string() }).optional(),
  queue_length: z.int().nonnegative(),
  /** In US dollars. */
  cost: z.number(),
  damaged: z.boolean(),
  /** Set if the counts cover only a part of the log. */
  estimated: z.boolean().optional(),
})
export type WireSessionSummary = z.infer<typeof sessionInfoSchema>

/** Newest first; the last page has no cursor. */
export const sessionPageSchema = z.object({ sessions: z.array(sessionInfoSchema), cursor: z.string().optional() })
export type WireSessionSummaryPage = z.infer<typeof sessionPageSchema>

export const promptResultSchema = z.discriminatedUnion('outcome', [
  z.object({ outcome: z.literal('started'), run_id: z.string() }),
  z.object({ outcome: z.enum(['steered', 'queued']), run_id: z.string().nullable(), message_id: z.string() }),
  /** A slash command that needed no model. */
  z.object({ outcome: z.literal('handled'), say: z.string().nullable() }),
])
export type WirePromptResult = z.infer<typeof promptResultSchema>

/** The result of a command over HTTP: the same members as in an `ack`. */
export const acceptedSchema = z.looseObject({ run_id: z.string().nullish() })

export const queuedMessageSchema = z.object({
  id: z.string(),
  message: z.string(),
  image_ids: z.array(z.string()),
  queued_at: z.string(),
  client_id: z.string().optional(),
  /** Set if the message is held: it is delivered only after a release. */
  held: z.literal(true).optional(),
})
export type WireQueuedMessageBody = z.infer<typeof queuedMessageSchema>

export const queueListSchema = z.object({ messages: z.array(queuedMessageSchema), count: z.int().nonnegative() })
export type WireQueueList = z.infer<typeof queueListSchema>

export const queueAddedSchema = z.object({ id: z.string(), message: z.string(), queued_at: z.string() })
export type WireQueueAdded = z.infer<typeof queueAddedSchema>

/** A line of the log, or a notice that lines are lost. */
export const eventSchema = z.looseObject({ seq: z.int().positive(), type: z.string() })

export const eventPageSchema = z.object({ events: z.array(eventSchema), head: cursorSchema })
export type EventPage = z.infer<typeof eventPageSchema>

/** A change in the list of sessions. */
export const sessionFeedSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('session_changed'), session: sessionInfoSchema }),
  z.object({ type: z.literal('session_removed'), session_id: z.string() }),
])
export type WireSessionFeedEvent = z.infer<typeof sessionFeedSchema>

export const permissionListSchema = z.object({ permissions: z.array(permissionSchema) })
export type WirePermissionList = z.infer<typeof permissionListSchema>

export const permissionAnsweredSchema = z.object({ request_id: z.string() })

/** A stored image; prompts refer to it in `image_ids`. */
export const imageStoredSchema = z.object({ id: sha256, size: z.int().nonnegative(), media_type: z.string() })
export type WireImageStored = z.infer<typeof imageStoredSchema>
