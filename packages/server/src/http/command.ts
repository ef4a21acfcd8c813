import { newId, type Session } from '@tapetree/session'
import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'
import type { Problem } from '@tapetree/client'
import { checkCommand, type Ack, type Operation } from '@tapetree/client/protocol'
import type { Context } from 'hono'
import { z, type ZodType } from 'zod'
import { checkRole, mayDo } from '../auth/operation-roles.ts'
import type { LiveSession } from '../live/live-session.ts'
import { RequestProblem } from '../util/problem-error.ts'
import type { AppEnv } from './app.ts'
import { changedMeanwhile, namesTag } from './responses.ts'

const id = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)

/** Headers of every request that has an effect. */
export const commandHeaders = z.object({
  /** Makes a request idempotent. Keys of different tokens are independent. */
  'idempotency-key': id.optional(),
  /** The client id, as on a socket. It belongs to the token that uses it first. */
  'x-client-id': id.optional(),
})

export interface CommandRequest {
  op: Operation
  args: Record<string, unknown>
  ifHead?: number
  /** For a request with several commands: the whole request, and the index of this one. */
  of?: { request: unknown; index: number }
}

export type Done = Ack & { ok: true }

/** Runs a command that came as a request. Rejects with its problem if it is rejected. */
export async function perform(context: Context<AppEnv>, live: LiveSession, request: CommandRequest): Promise<Done> {
  const { op, args, ifHead, of } = request
  const caller = context.get('caller')
  checkRole(caller, { op, args }, live)
  const commandId = commandIdOf(context, partOf(request)) ?? newId()
  const sender = { tokenId: caller.tokenId, mayDrive: mayDo(caller.role, 'drive') }
  const traceparent = context.get('traceparent')
  const limits = context.get('limits')
  const frame = {
    op,
    args,
    sender,
    ...(traceparent !== undefined && { traceparent }),
    ...(ifHead !== undefined && { ifHead }),
    ...(of && { request: of.request }),
    ...(limits && { checkLimits: () => limits.checkCommand(op) }),
  }
  const ack = await live.perform(commandId, clientOf(context), frame)
  if (ack.error) throw errorOf(ack.error)
  return ack as Done
}

/**
 * Runs the commands of one request. None runs if one is malformed or needs a larger role, or if the current ETag does not
 * match: the tag covers one state of the log, and the first command is rejected if that is no longer the newest one.
 */
export async function performAll(
  context: Context<AppEnv>,
  live: LiveSession,
  {
    commands,
    ifMatch,
    currentTag,
  }: { commands: readonly CommandRequest[]; ifMatch: string | undefined; currentTag: () => string | Promise<string> },
): Promise<void> {
  for (const { op, args } of commands) {
    checkRole(context.get('caller'), { op, args }, live)
    const checked = checkCommand(op, args)
    if (!checked.ok) throw new RequestProblem(422, 'invalid-command', checked.message)
  }
  const [first, ...rest] = commands
  // The request took effect before, and changed what it had to match.
  const isDone = commands.some((command) => wasDone(context, live.session, command))
  if (first && (ifMatch === undefined || isDone)) await perform(context, live, first)
  else if (first && ifMatch !== undefined) await performIfMatch(context, live, { first, ifMatch, currentTag })
  for (const command of rest) await perform(context, live, command)
}

async function performIfMatch(
  context: Context<AppEnv>,
  live: LiveSession,
  {
    first,
    ifMatch,
    currentTag,
  }: { first: CommandRequest; ifMatch: string; currentTag: () => string | Promise<string> },
): Promise<void> {
  for (;;) {
    const { seq } = live.session.head
    const etag = await currentTag()
    if (!namesTag(ifMatch, etag)) throw changedMeanwhile(etag)
    try {
      return void (await perform(context, live, { ...first, ifHead: seq }))
    } catch (error) {
      if (!(error instanceof RequestProblem && error.problem.type === 'head-moved')) throw error
    }
  }
}

/** The first command has the key of the request itself, so that another request with this key conflicts with it. */
function partOf({ of }: Pick<CommandRequest, 'of'>): string | undefined {
  return of === undefined || of.index === 0 ? undefined : String(of.index)
}

/** The commands of one request, as its idempotency key identifies them. */
export function partsOf(commands: readonly Pick<CommandRequest, 'op' | 'args'>[]): CommandRequest[] {
  return commands.map((command, index) => ({ ...command, of: { request: commands, index } }))
}

/** The command id of a request with an idempotency key. Sockets cannot use it: their ids have no colon. */
export function commandIdOf(context: Context<AppEnv>, part?: string): string | undefined {
  const key = context.req.header('idempotency-key')
  if (key === undefined) return undefined
  return `${context.get('caller').tokenId}:${key}${part === undefined ? '' : `/${part}`}`
}

/** Whether a request with this key, or one command of it, took effect before. */
export function wasDone(context: Context<AppEnv>, session: Session, request: Pick<CommandRequest, 'of'> = {}): boolean {
  const commandId = commandIdOf(context, partOf(request))
  return commandId !== undefined && session.effectOf(commandId) !== undefined
}

/** Throws `client-id-taken` if the client id belongs to another token. */
export function clientOf(context: Context<AppEnv>): string {
  const named = context.req.header('x-client-id')
  if (named === undefined) return 'rest'
  context.get('sessions').clientIds.claim(named, context.get('caller').tokenId)
  return named
}

function errorOf({ status, type, detail, title: _, ...more }: Problem): RequestProblem {
  return new RequestProblem(status, type, detail ?? '', more)
}

/** The result of a command. After a restart it is rebuilt from the line that the command caused. */
export async function resultOf<T>(session: Session, done: Done, schema: ZodType<T>): Promise<T> {
  const result = schema.safeParse(await saidOf(session, done))
  if (result.success) return result.data
  if (!done.dup) throw result.error
  throw new RequestProblem(422, 'key-reused', 'This idempotency key was used for another request. Use a new key.')
}

async function saidOf(session: Session, { result, seq }: Done): Promise<unknown> {
  if (result !== undefined) return result
  const line = seq === undefined ? undefined : await lineAt(session, seq)
  return line ? toldBy(line) : {}
}

async function lineAt(session: Session, seq: number): Promise<Line | undefined> {
  for await (const line of session.lines({ after: seq - 1 })) {
    return line.type === 'line' ? fromDisk(JSON.parse(line.text) as DiskLine, line.seq) : undefined
  }
  return undefined
}

function toldBy(line: Line): Record<string, unknown> {
  switch (line.type) {
    case 'message':
      return { outcome: 'started', run_id: line.message.runId ?? '' }
    case 'run_start':
      return { outcome: 'started', run_id: line.runStart.runId }
    case 'workspace': {
      const { hostName: host, name: workspace, folder } = line.workspace
      return { host, workspace, folder }
    }
    case 'compaction':
      return { outcome: 'compacted' }
    case 'leaf':
      return { leaf_id: line.leaf.targetId }
    case 'permission_result':
      return { request_id: line.permissionResult.requestId }
    case 'submission': {
      const { submission } = line
      if (submission.action !== 'add') return {}
      const { id, message, delivery, queuedAt } = submission
      const outcome = delivery === 'steer' ? 'steered' : 'queued'
      return { outcome, run_id: null, message_id: id, id, message, queued_at: queuedAt }
    }
    default:
      return {}
  }
}
