import { newId } from '@tapetree/session'
import type { Ack, Operation, Problem } from '@tapetree/client'
import type { Context } from 'hono'
import { z } from 'zod'
import { operationRoles } from '../auth/operation-roles.ts'
import { mayDo } from '../auth/role.ts'
import type { LiveSession } from '../live/live-session.ts'
import { ProblemError } from '../live/problem-error.ts'
import type { AppEnv } from './app.ts'

const id = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)

/** What goes with every request that has an effect. */
export const commandHeaders = z.object({
  /** A request that is sent again under its key takes effect once. The key is the id of the command. */
  'idempotency-key': id.optional(),
  /** Who is said to have done it, as the client id of a socket. */
  'x-client-id': id.optional(),
})

export interface CommandRequest {
  op: Operation
  args: Record<string, unknown>
  ifHead?: number
  /** For a request that is several commands: what this one does. */
  part?: string
}

export type Done = Ack & { ok: true }

/** Carries out a command that came as a request. Rejects with the problem of one that was refused. */
export async function perform(context: Context<AppEnv>, live: LiveSession, request: CommandRequest): Promise<Done> {
  const { op, args, ifHead, part } = request
  const { role } = context.get('caller')
  const needs = operationRoles[op]
  if (!mayDo(role, needs)) {
    throw new ProblemError(403, 'role-too-small', `${op} needs the role ${needs}; the token has ${role}.`, { needs })
  }
  const key = context.req.header('idempotency-key')
  const commandId = key === undefined ? newId() : part === undefined ? key : `${key}.${part}`
  const ack = await live.perform(commandId, clientOf(context), { op, args, ...(ifHead !== undefined && { ifHead }) })
  if (ack.error) throw errorOf(ack.error)
  return ack as Done
}

export function clientOf(context: Context<AppEnv>): string {
  return context.req.header('x-client-id') ?? 'rest'
}

function errorOf({ status, type, detail, title: _, ...more }: Problem): ProblemError {
  return new ProblemError(status, type, detail ?? '', more)
}
