import { AgentSession, onlyModel } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { checkCommand, operationNames, type Ack, type Operation, roles } from '@tapetree/client/protocol'
import { AgentDriver, LiveSessions, startServer, TokenStore, type LiveSession, type Role } from '@tapetree/server'
import { memoryStore, type Session } from '@tapetree/session'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { WebSocket, type RawData } from 'ws'
import { askingGate } from '../../../packages/server/src/http/testing/asking-gate.ts'
import type { PartContext } from './part-context.ts'

/** What a session is doing when a command comes. */
const situations = ['idle', 'asking'] as const
type Situation = (typeof situations)[number]

/** Ids that arguments may name. */
interface Ids {
  followUp: string
  steer: string
  entry: string
  request: string
}

/** Written down once more, apart from the table of the server: whether a role may do this. */
function mayDo(role: Role, op: Operation, args: Record<string, unknown>, ids: Ids): boolean {
  if (role === 'drive') return true
  if (role === 'view' || role === 'metrics' || role === 'host') return false
  if (op === 'permission.answer' || op === 'blocked') return role === 'approve'
  const steers = args['delivery'] === 'steer' || args['id'] === ids.steer
  switch (op) {
    case 'follow_up':
    case 'label':
    case 'rename':
      return true
    case 'queue.add':
    case 'queue.edit':
    case 'queue.move':
    case 'queue.hold':
    case 'queue.remove':
      return !steers
    case 'queue.clear':
      return args['delivery'] === 'follow-up'
    default:
      return false
  }
}

/** Every combination of the members that make a difference. */
function variantsOf(op: Operation, { followUp, steer, entry, request }: Ids): Record<string, unknown>[] {
  const deliveries = [{}, { delivery: 'follow-up' }, { delivery: 'steer' }]
  const messages = [followUp, steer]
  switch (op) {
    case 'prompt':
      return [{}, ...['queue', 'steer', 'reject'].map((when_busy) => ({ when_busy }))].flatMap((more) =>
        ['go', '/deploy now'].map((text) => ({ text, ...more })),
      )
    case 'steer':
    case 'follow_up':
      return ['go', '/deploy now', '/skill:x'].map((text) => ({ text }))
    case 'cancel':
      return [{}, { run_id: 'r-1' }]
    case 'retry':
      return [{}]
    case 'resume':
      return [{}, { by_person: true }, { by_person: false }]
    case 'permission.answer':
      return [{ option_id: 'yes' }, { option_id: 'no' }, { outcome: 'cancelled' }].map((answer) => ({
        request_id: request,
        ...answer,
      }))
    case 'set_model':
      return [{ provider: 'scripted', model_id: 'scripted-1' }]
    case 'set_thinking_level':
      return [{ level: 'high' }]
    case 'set_config':
      return ['ask', 'accept-edits', 'sandboxed', 'plan', 'auto'].map((mode) => ({ mode }))
    case 'set_workspace':
      return [{ host: 'laptop', workspace: 'app' }]
    case 'compact':
      return [{}, { instructions: 'all' }]
    case 'branch':
      return [{ entry_id: null }, { entry_id: entry }]
    case 'rewind':
      return [{ entry_id: entry, what: 'talk' }, { entry_id: entry, dry_run: true }, {}, { interrupted: 'undo' }]
    case 'blocked':
      return [{}, { apply: 'job-1.0' }, { discard: 'job-1.0' }]
    case 'label':
      return [{ entry_id: entry, label: 'here' }]
    case 'rename':
      return [{ name: 'other' }]
    case 'bash':
      return [{ command: 'true' }]
    case 'queue.add':
      return deliveries.flatMap((delivery) => ['go', '/deploy now'].map((message) => ({ message, ...delivery })))
    case 'queue.edit':
      return messages.flatMap((id) => [...deliveries, { message: 'other' }].map((change) => ({ id, ...change })))
    case 'queue.move':
      return messages.map((id) => ({ id, before_id: null }))
    case 'queue.hold':
    case 'queue.release':
      return [{}, ...messages.map((id) => ({ id }))]
    case 'queue.remove':
      return messages.map((id) => ({ id }))
    case 'queue.clear':
      return deliveries
    default:
      return op satisfies never
  }
}

/**
 * Every operation with every variant of its arguments, by every role, in an idle session and in one that waits for permission. Judged by
 * the log: whoever may not drive starts no run, steers none, runs no slash command and takes back no question.
 */
export async function tryRoles({ folder, random, complain }: PartContext): Promise<{ commands: number }> {
  const ran: string[] = []
  const sessions = askingSessions(ran)
  const tokens = await TokenStore.open({ file: join(folder, 'roles.json') })
  const server = await startServer({ tenants: new Map([['default', sessions]]), tokens })
  let commands = 0
  try {
    for (const role of roles) {
      const { token } = await tokens.create({ tenant: 'default', role })
      for (const situation of situations) {
        for (const op of operationNames) await tryOperation({ role, token, situation, op })
      }
    }
    return { commands }
  } finally {
    await server.close()
  }

  async function tryOperation(at: { role: Role; token: string; situation: Situation; op: Operation }): Promise<void> {
    const { role, token, situation, op } = at
    const all = variantsOf(op, noIds).map((_, index) => index)
    // Whoever drives may do it all, and whoever looks may do nothing: one variant shows it.
    const one = Math.floor(random() * all.length)
    for (const variant of role === 'queue' || role === 'approve' ? all : [one]) {
      const { live, ids } = await prepare(sessions, situation)
      const args = variantsOf(op, ids)[variant] ?? {}
      const what = `${role} sends ${op} ${JSON.stringify(args)} to a session that is ${situation}`
      if (!checkCommand(op, args).ok) complain(`the proof has wrong arguments: ${what}`)
      const before = live.session.head.seq
      ran.length = 0
      const ack = await send(`${server.url}/api/sessions/${live.session.id}/ws`, token, { op, args })
      commands++
      const isRefused = ack.error?.type === 'role-too-small'
      if (isRefused === mayDo(role, op, args, ids)) {
        complain(`${what}: ${isRefused ? 'refused, although it may' : `not refused but ${JSON.stringify(ack)}`}`)
      }
      if (role !== 'drive') {
        const isAnswer = op === 'permission.answer' && role === 'approve'
        for (const fault of await faultsIn(live.session, { before, situation, isAnswer })) complain(`${what}: ${fault}`)
        if (ran.length > 0) complain(`${what}: ran a slash command`)
      }
      await sessions.release(live.session.id)
    }
  }
}

const noIds: Ids = { followUp: 'q-1', steer: 'q-2', entry: 'e-1', request: 'r-1' }

function askingSessions(ran: string[]): LiveSessions {
  const store = memoryStore()
  return new LiveSessions({
    store,
    openDriver: async (sessionId) => {
      const model = scriptedModel(script().toolCall('call-1', 'act', {}), {
        otherwise: () => [{ type: 'text_delta', text: 'Said.' }],
      })
      const agent = await AgentSession.open({
        store,
        sessionId,
        models: onlyModel(model),
        tools: () => [model.tool('act')],
        gate: askingGate,
        hasSubagents: false,
        cwd: '/',
        expand: async (typed) => {
          if (!typed.startsWith('/')) return { type: 'as_typed', text: typed }
          ran.push(typed)
          return { type: 'done' }
        },
      })
      return new AgentDriver({ agent })
    },
    create: async ({ model: _model, agent: _agent, ...header }) => {
      await using session = await store.create(header)
      return session.id
    },
  })
}

/** A session with a follow-up and a steer that wait, both held so that only the command under test can send them. */
async function prepare(sessions: LiveSessions, situation: Situation): Promise<{ live: LiveSession; ids: Ids }> {
  const live = await sessions.get(await sessions.create({ cwd: '/' }))
  const { session } = live
  await session.appendSessionInfo('under test')
  if (situation === 'asking') {
    const asked = Promise.withResolvers<void>()
    const stop = session.subscribe(({ line }) => line.type === 'permission_request' && asked.resolve())
    await live.perform('prompt', 'owner', { op: 'prompt', args: { text: 'act' } })
    await asked.promise
    stop()
  }
  await session.changeInbox({ action: 'hold' })
  const followUp = await session.submit('later')
  const steer = await session.submit('now', { delivery: 'steer' })
  for (const { id } of [followUp, steer]) await session.changeInbox({ action: 'hold', id })
  await session.changeInbox({ action: 'release' })
  const request = session.pendingPermissions[0]?.requestId ?? 'none'
  return { live, ids: { followUp: followUp.id, steer: steer.id, entry: session.leafId ?? 'none', request } }
}

/** What the log says that must not be there, once everything that the command set off has settled. */
async function faultsIn(
  session: Session,
  { before, situation, isAnswer }: { before: number; situation: Situation; isAnswer: boolean },
): Promise<string[]> {
  // A run that somebody started has its line by then: its message is written before the command is answered.
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  const faults: string[] = []
  for await (const stored of session.lines({ after: before })) {
    if (stored.type !== 'line') continue
    const line = JSON.parse(stored.text) as Record<string, unknown> & { type: string }
    if (line.type === 'run_start') faults.push('a run began')
    if (line.type === 'message' && !isAnswer) faults.push('a message went out')
    if (line.type === 'permission_result' && !isAnswer) faults.push('a question was answered or taken back')
    const submission = line['submission'] as { delivery?: string } | undefined
    if (submission?.delivery === 'steer') faults.push('something steers')
  }
  if (situation === 'asking' && !isAnswer && session.pendingPermissions.length === 0)
    faults.push('the question is gone')
  return faults
}

/** One command on a socket of its own. */
async function send(url: string, token: string, data: { op: Operation; args: object }): Promise<Ack> {
  const socket = new WebSocket(url.replace('http', 'ws'), ['tapetree.v1', `bearer.${token}`])
  const { promise, resolve, reject } = Promise.withResolvers<Ack>()
  socket.on('message', (bytes: RawData) => {
    const frame = JSON.parse((bytes as Buffer).toString()) as { type: string; data: Ack }
    if (frame.type === 'attached') socket.send(JSON.stringify({ type: 'cmd', data: { id: 'under-test', ...data } }))
    if (frame.type === 'ack') resolve(frame.data)
  })
  // A role that may not even watch gets no socket.
  socket.on('error', () => undefined)
  socket.on('unexpected-response', (_request, response: IncomingMessage) => {
    const error = { type: 'role-too-small', title: '', status: response.statusCode ?? 0 }
    if (error.status === 403) resolve({ id: 'under-test', ok: false, error })
    else reject(new Error(`the upgrade was answered with ${error.status}`))
  })
  socket.on('close', (code) => reject(new Error(`the socket was closed with ${code}`)))
  socket.on('open', () =>
    socket.send(
      JSON.stringify({ type: 'attach', data: { client: { id: `client-${token.slice(9, 25)}` }, deltas: false } }),
    ),
  )
  try {
    return await promise
  } finally {
    socket.terminate()
  }
}
