import { checkCommand, roles, type Arguments, type Operation, type Role } from '@tapetree/client/protocol'
import { RequestProblem } from '../util/problem-error.ts'

export { roles, type Role }

const ladder: readonly Role[] = ['view', 'queue', 'approve', 'drive']

/** `metrics` and `host` are no steps of the ladder: they include no other role, and of the others only `drive` includes them. */
export function mayDo(has: Role, needs: Role): boolean {
  if (has === needs) return true
  if (!ladder.includes(has) || !ladder.includes(needs)) return has === 'drive'
  return ladder.indexOf(has) >= ladder.indexOf(needs)
}

/** The caller as determined by the server; only the token comes from the request. */
export interface Caller {
  tokenId: string
  tenant: string
  role: Role
  /** Absolute. Absent: all folders of the server. */
  folder?: string
}

/** The queued messages of the session that a command addresses. */
export interface QueueFacts {
  deliveryOf: (messageId: string) => 'steer' | 'follow-up' | undefined
}

/** The role that every use of an operation needs, and the arguments that need `drive`. */
interface OperationAccess<Op extends Operation> {
  role: Role
  needsDrive?: (args: Arguments<Op>, queue: QueueFacts) => boolean
}

/**
 * Required roles. Everything that starts or steers a run, or changes a steer, needs `drive`, whichever
 * operation does it.
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
  set_workspace: { role: 'drive' },
  compact: { role: 'drive' },
  branch: { role: 'drive' },
  rewind: { role: 'drive' },
  /** As for the question about such a file, after the command. */
  blocked: { role: 'approve' },
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
  /** A released message may start a run. */
  'queue.release': { role: 'drive' },
  'queue.remove': { role: 'queue', needsDrive: ({ id }, { deliveryOf }) => deliveryOf(id) === 'steer' },
  /** Without a delivery it also clears steers. */
  'queue.clear': { role: 'queue', needsDrive: ({ delivery }) => delivery !== 'follow-up' },
}

/** Throws `role-too-small` unless the caller may run this with these arguments. Does not validate arguments. */
export function checkRole(caller: Caller, command: { op: Operation; args?: unknown }, queue: QueueFacts): void {
  const { role } = caller
  const needs = roleFor(command, queue)
  if (mayDo(role, needs)) {
    if (command.op === 'set_workspace') refuseConfined(caller)
    return
  }
  const how = needs === operationAccess[command.op].role ? '' : ' with these arguments'
  const detail = `${command.op}${how} needs the role ${needs}; the token has the role ${role}.`
  throw new RequestProblem(403, 'role-too-small', detail, { needs })
}

/** The folders of tool hosts are not those of the server, so a token for one folder does not include them. */
export function refuseConfined({ folder }: Caller): void {
  if (folder === undefined) return
  const detail = 'The token is for one folder of the server, so it cannot use tool hosts.'
  throw new RequestProblem(403, 'folder-only', detail)
}

function roleFor({ op, args }: { op: Operation; args?: unknown }, queue: QueueFacts): Role {
  const { role, needsDrive } = operationAccess[op] as OperationAccess<Operation>
  const checked = needsDrive && checkCommand(op, args)
  return checked?.ok && needsDrive?.(checked.command.args, queue) ? 'drive' : role
}
