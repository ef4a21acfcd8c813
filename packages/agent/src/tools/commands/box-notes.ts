import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '@tapetree/session/util/replace-file'
import type { BoxKind, ToolContext } from '../tool.ts'
import type { Blocked, Command, CommandSandbox } from './command.ts'
import { settleControls } from './settle-controls.ts'

/** The call that started a command in a sandbox. */
interface BoxedCall {
  callId: string
  kind: BoxKind
}

/** Written beside the output of a command, so that a later call of `job_output` knows it, in any process. */
const callFile = 'sandbox-call.json'
/** What is in the log already. */
const recordedFile = 'sandbox-blocked.json'

/** Before the command starts: if this is cut off, there is no command. */
export async function rememberBoxedCall(spool: string, call: BoxedCall): Promise<void> {
  await writeFile(join(spool, callFile), JSON.stringify(call), { mode: 0o600 })
}

/** Undefined if the command runs outside. */
export async function boxedCallOf({ spool }: Command): Promise<BoxedCall | undefined> {
  return (await readJson(join(spool, callFile))) as BoxedCall | undefined
}

/** All that bubblewrap prints if a socket goes after the last look at it and before the mount over it. The command has not started then. */
const socketWentAway = [
  /^bwrap: Can't (?:create file at|mkdir parents for) (.+): Read-only file system\n$/,
  /^bwrap: Can't bind mount \/oldroot\/dev\/null on \/newroot(.+): Unable to mount source on destination: No such file or directory\n$/,
]

/** The socket that went away, if the command has not started because of it. */
export function socketThatWent(output: string): string | undefined {
  return socketWentAway.map((pattern) => pattern.exec(output)?.[1]).find((path) => path !== undefined)
}

interface NotesOptions {
  sandbox: CommandSandbox
  call: BoxedCall
  context: Pick<ToolContext, 'cwd' | 'callId' | 'sessionId' | 'ask' | 'append'>
  /** Then new control files are taken back. They stay only if the user agrees. */
  hasEnded: boolean
}

/** The sentences about a command in a sandbox that the model and the user read: hosts that it reached, and what was blocked. Records what was blocked. */
export async function boxNotes(
  command: Pick<Command, 'spool' | 'output' | 'state'>,
  { sandbox, call: { callId, kind }, context, hasEnded }: NotesOptions,
): Promise<string[]> {
  const { spool } = command
  const { cwd } = context
  const { pieces } = await command.output()
  const text = Buffer.concat(pieces.map(({ bytes }) => bytes)).toString()
  const id = sandboxCallId({ ...context, callId })
  const reached = (await sandbox.reachedBy?.(id)) ?? []
  const isLeft = kind === 'read-only' || !hasEnded ? [] : await settleControls(sandbox, { ...context, callId, spool })
  const wentAway = socketThatWent(text)
  // A command can print that line as well, so nothing may show that it ran.
  if (wentAway !== undefined && isLeft.length + reached.length === 0 && (await hasFailed(command))) {
    return [
      `It did not start, because ${wentAway}, a socket that the sandbox hides, went away at that moment. Run it again.`,
    ]
  }
  const blocked = await sandbox.blockedIn(text, { cwd, callId: id })
  await recordBlocked(blocked, { ...context, callId, spool })
  return [...reachedNotes(reached), ...blockedNotes(blocked), ...isLeft]
}

/** As bubblewrap does if it cannot start a command. */
async function hasFailed(command: Pick<Command, 'state'>): Promise<boolean> {
  const state = await command.state()
  return state.type === 'ended' && state.exit.code === 1
}

/** Providers choose the ids of calls, so two subagents may have the same. */
export function sandboxCallId({ sessionId, callId }: Pick<ToolContext, 'sessionId' | 'callId'>): string {
  return `${sessionId}/${encodeURIComponent(callId)}`
}

/** The output of a job is read often: only what is new is recorded. */
async function recordBlocked(
  blocked: readonly Blocked[],
  { callId, spool, append }: Pick<ToolContext, 'callId' | 'append'> & { spool: string },
): Promise<void> {
  const file = join(spool, recordedFile)
  const recorded = ((await readJson(file)) ?? {}) as Record<string, number>
  const fresh = blocked.filter(({ kind, what, count }) => recorded[`${kind} ${what}`] !== count)
  for (const { reason: _, ...each } of fresh) await append({ type: 'blocked', blocked: { callId, ...each } })
  if (fresh.length === 0) return
  const counts = Object.fromEntries(fresh.map(({ kind, what, count }) => [`${kind} ${what}`, count]))
  await replaceFile(file, JSON.stringify({ ...recorded, ...counts }))
}

async function readJson(file: string): Promise<unknown> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : (JSON.parse(text) as unknown)
}

const maxHostsShown = 20

function reachedNotes(hosts: readonly string[]): string[] {
  if (hosts.length === 0) return []
  const more = hosts.length > maxHostsShown ? ` and ${hosts.length - maxHostsShown} more` : ''
  return [`Hosts reached from the sandbox: ${hosts.slice(0, maxHostsShown).join(', ')}${more}.`]
}

const blockedKinds: Readonly<Record<Blocked['kind'], string>> = {
  write: 'writing',
  network: 'reaching',
  socket: 'connecting to',
  hidden: 'reading',
}

const nameless: Readonly<Record<Blocked['kind'], string>> = {
  write: 'a read-only place',
  network: 'the network',
  socket: 'a service of this machine',
  hidden: 'a file with secrets',
}

function blockedNotes(blocked: readonly Blocked[]): string[] {
  const unexplained = blocked.filter(({ reason }) => reason === undefined)
  const things = unexplained.map(({ kind, what }) => `${blockedKinds[kind]} ${what === '' ? nameless[kind] : what}`)
  const advice = `If the task needs this, call bash again with \`outside\` and the reason: the user is asked. Otherwise find another way.`
  return [
    ...blocked.flatMap(({ kind, what, reason }) =>
      reason === undefined ? [] : [`The sandbox blocked ${blockedKinds[kind]} ${what}: ${reason}`],
    ),
    ...(things.length > 0 ? [`The sandbox blocked ${things.join(', ')}. ${advice}`] : []),
  ]
}
