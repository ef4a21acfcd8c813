// What clients send by HTTP. A client does not validate it, so its bundle does not contain these schemas.
import { z } from 'zod'
import { operations } from './command.ts'
import { sessionStatusSchema } from './rest.ts'

const name = z.string().max(1000)
const id = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)
const limit = z.coerce.number().int().min(1)
const { prompt, compact, resume } = operations

export const sessionQuerySchema = z.object({
  limit: limit.max(200).optional(),
  cursor: z.string().max(1000).optional(),
  cwd: z.string().max(4096).optional(),
  status: sessionStatusSchema.optional(),
  /** Matches part of the name, the first message or the folder. */
  q: z.string().max(1000).optional(),
  /** The place of the sessions. Default: `active`. */
  place: z.enum(['active', 'archive', 'trash']).optional(),
})

export const modelReferenceSchema = z.strictObject({ provider: z.string().max(200), model_id: z.string().max(200) })

export const createSessionSchema = z.strictObject({
  /** Default: the first folder that the server allows; without such folders, the session has none. */
  cwd: z.string().min(1).max(4096).optional(),
  name: name.optional(),
  model: modelReferenceSchema.optional(),
  agent: z.string().max(200).optional(),
  parent_session: id.optional(),
  /** The tools work in a folder of a tool host. */
  workspace: operations.set_workspace.optional(),
  /** Sent once the session exists. */
  prompt: prompt.shape.text.optional(),
})

/** With `erase=true` the session is deleted for good; otherwise it goes to the trash. */
export const deleteSessionQuerySchema = z.object({ erase: z.enum(['true', 'false']).optional() })

/** A JSON merge patch. */
export const patchSessionSchema = z.strictObject({
  /** Null removes it. */
  name: name.nullable().optional(),
  model: modelReferenceSchema.optional(),
  thinking_level: operations.set_thinking_level.shape.level.optional(),
  mode: operations.set_config.shape.mode.optional(),
})

export const forkSchema = z.strictObject({ entry_id: id.optional(), name: name.optional() })

export const promptSchema = prompt
export const compactSchema = compact
export const setWorkspaceSchema = operations.set_workspace
export const retrySchema = operations.retry
export const resumeSchema = resume
export const rewindSchema = operations.rewind
/** The run id keeps a late click from ending the next run. */
export const cancelSchema = operations.cancel

export const queueAddSchema = z.strictObject({
  message: operations['queue.add'].shape.message,
  image_ids: operations['queue.add'].shape.image_ids,
})

/** Edits, moves, holds or releases a queued message. */
export const queuePatchSchema = z.strictObject({
  message: operations['queue.edit'].shape.message,
  image_ids: operations['queue.edit'].shape.image_ids,
  delivery: operations['queue.edit'].shape.delivery,
  /** Null moves it to the end. */
  before_id: id.nullable().optional(),
  held: z.boolean().optional(),
})

/**
 * `after`: the lines after this one, oldest first; waits up to `wait` seconds if there are none yet. `before`:
 * the newest `limit` lines before this one, also oldest first. Long lines are included completely.
 */
export const eventQuerySchema = z.object({
  after: z.coerce.number().int().nonnegative().optional(),
  before: z.coerce.number().int().positive().optional(),
  limit: limit.max(1000).optional(),
  wait: z.coerce.number().min(0).max(60).optional(),
})

export const permissionAnswerSchema = operations['permission.answer'].omit({ request_id: true })
