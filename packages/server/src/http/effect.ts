import { fromDisk, type DiskLine, type Line, type Session } from '@tapetree/session'
import type { ZodType } from 'zod'
import { RequestProblem } from '../util/problem-error.ts'
import type { Done } from './command.ts'

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
    case 'compaction':
      return { outcome: 'compacted' }
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
