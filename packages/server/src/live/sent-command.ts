import { createHash } from 'node:crypto'
import type { Cause, Session } from '@tapetree/session'
import type { DiskLine } from '@tapetree/session/format'
import { localUser } from './driver.ts'

/** The sender of a command. Absent: the user of this process. */
export interface CommandSender {
  tokenId: string
  /** False: the command queues messages, but starts no run and runs no slash command. */
  mayDrive: boolean
}

/** Identifies a command beyond its id. */
export type CommandIdentity = Required<Pick<Cause, 'token' | 'digest'>>

export function identityOf(
  { op, args }: { op: string; args?: unknown },
  sender: Pick<CommandSender, 'tokenId'> | undefined,
): CommandIdentity {
  const text = JSON.stringify([op, args ?? {}], sortMembers)
  const digest = createHash('sha256').update(text).digest('hex').slice(0, digestLength)
  return { token: sender?.tokenId ?? localUser, digest }
}

export function isSame(left: CommandIdentity, right: CommandIdentity): boolean {
  return left.token === right.token && left.digest === right.digest
}

/**
 * Whether the line at `seq` is the effect of this very command. Lines of earlier versions have only its id,
 * which is enough. So it is if the log cannot be read because the session is being closed.
 */
export async function isEffectOf(session: Session, seq: number, identity: CommandIdentity): Promise<boolean> {
  const found = await readIdentity(session, seq).catch(() => undefined)
  return found === undefined || isSame(found, identity)
}

async function readIdentity(session: Session, seq: number): Promise<CommandIdentity | undefined> {
  for await (const line of session.lines({ after: seq - 1 })) {
    if (line.type !== 'line') return undefined
    const { cause } = JSON.parse(line.text) as DiskLine & { cause?: Partial<Cause> }
    return cause?.digest === undefined ? undefined : { token: cause.token ?? localUser, digest: cause.digest }
  }
  return undefined
}

const digestLength = 32

function sortMembers(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)))
}
