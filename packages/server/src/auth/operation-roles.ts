import { checkCommand, type Arguments, type Operation } from '@tapetree/client'
import { RequestProblem } from '../util/problem-error.ts'

/** What a token lets do, each more than the one before it: look, leave messages, answer questions, drive. */
export const roles = ['view', 'queue', 'approve', 'drive'] as const
export type Role = (typeof roles)[number]

export function mayDo(has: Role, needs: Role): boolean {
  return roles.indexOf(has) >= roles.indexOf(needs)
}

/** Who is calling, as the server says: nothing of it comes from the request but the token. */
export interface Caller {
  tokenId: string
  tenant: string
  role: Role
}

/** The messages that wait in the session that a command is for. */
export interface QueueFacts {
  deliveryOf: (messageId: string) => 'steer' | 'follow-up' | undefined
}

/** The role that every use of an operation needs, and the arguments that need `drive`. */
interface OperationAccess<Op extends Operation> {
  role: Role
  needsDrive?: (args: Arguments<Op>, queue: QueueFacts) => boolean
}

/**
 * What each operation needs. Whatever starts a run, steers one or changes a message that steers needs `drive`, whichever operation
 * it comes by.
 */
export const operationAccess: { readonly [Op in Operation]: OperationAccess<Op> } = {
  prompt: { role: 'drive' },
  steer: { role: 'drive' },
  follow_up: { role: 'queue' },
  cancel: { role: 'drive' },
  retry: { role: 'drive' },
  resume: { role: 'drive' },
  'permission.answer': { role: 'approve' },
  set_model: { role: 'drive' },
  set_thinking_level: { role: 'drive' },
  set_config: { role: 'drive' },
  compact: { role: 'drive' },
  branch: { role: 'drive' },
  label: { role: 'queue' },
  rename: { role: 'queue' },
  bash: { role: 'drive' },
  'queue.add': { role: 'queue', needsDrive: ({ delivery }) => delivery === 'steer' },
  'queue.edit': {
    role: 'queue',
    needsDrive: ({ id, delivery }, { deliveryOf }) => delivery === 'steer' || deliveryOf(id) === 'steer',
  },
  'queue.move': { role: 'queue', needsDrive: ({ id }, { deliveryOf }) => deliveryOf(id) === 'steer' },
  'queue.hold': {
    role: 'queue',
    needsDrive: ({ id }, { deliveryOf }) => id !== undefined && deliveryOf(id) === 'steer',
  },
  /** A message that is let go may start a run. */
  'queue.release': { role: 'drive' },
  'queue.remove': { role: 'queue', needsDrive: ({ id }, { deliveryOf }) => deliveryOf(id) === 'steer' },
  /** Without a delivery it also clears messages that steer. */
  'queue.clear': { role: 'queue', needsDrive: ({ delivery }) => delivery !== 'follow-up' },
}

/** Throws `role-too-small` unless the caller may do this with these arguments. Malformed arguments are left to whoever performs it. */
export function checkRole({ role }: Caller, command: { op: Operation; args?: unknown }, queue: QueueFacts): void {
  const needs = roleFor(command, queue)
  if (mayDo(role, needs)) return
  const how = needs === operationAccess[command.op].role ? '' : ' with these arguments'
  const detail = `${command.op}${how} needs the role ${needs}; the token has ${role}.`
  throw new RequestProblem(403, 'role-too-small', detail, { needs })
}

function roleFor({ op, args }: { op: Operation; args?: unknown }, queue: QueueFacts): Role {
  const { role, needsDrive } = operationAccess[op] as OperationAccess<Operation>
  const checked = needsDrive && checkCommand(op, args)
  return checked?.ok && needsDrive?.(checked.command.args, queue) ? 'drive' : role
}
