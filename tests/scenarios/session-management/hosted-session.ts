import { onlyModel, allowAll, type AgentSessionOptions } from '@tapetree/agent'
import { FakeClock, script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { RemoteSession, RestClient, type QueueNotice } from '@tapetree/client'
import { agentSessions, startServer, TokenStore, type LiveSessions } from '@tapetree/server'
import type { SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { join } from 'node:path'
import { expect, onTestFinished, vi } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'

/** A busy machine is slow, not wrong. */
export const patiently = { timeout: 20_000 }

export interface Hosted {
  folder: string
  store: SessionStore
  sessions: LiveSessions
  sessionId: string
  clock: FakeClock
  rest: RestClient
  /** A screen of its own. */
  join: (name?: string) => Promise<RemoteSession>
  /** One request, as a program would make it. */
  ask: (method: string, path: string, body?: unknown) => Promise<{ status: number; body: unknown }>
  idle: () => Promise<void>
}

/** A session on a real server, in a real folder, whose model says what it is told to. */
export async function host(said: ScriptBuilder, options: Partial<AgentSessionOptions> = {}): Promise<Hosted> {
  const folder = temporaryFolder()
  const store = openFileStore({ folder: join(folder, 'sessions') })
  const clock = new FakeClock()
  const model = scriptedModel(said, { otherwise: () => script().text('Well.') })
  const sessions = agentSessions({
    store,
    models: onlyModel(model),
    tools: () => [model.tool('act')],
    gate: () => allowAll,
    hasSubagents: false,
    clock,
    ...options,
  })
  const tokens = await TokenStore.open({ file: join(folder, 'tokens.json') })
  const server = await startServer({ tenants: new Map([['default', sessions]]), tokens })
  onTestFinished(async () => void (await server.close()))
  const { token } = await tokens.create({ tenant: 'default', role: 'drive' })
  const address = { baseUrl: server.url, token }
  const sessionId = await sessions.create({ cwd: folder })

  const join_ = async (name = 'screen'): Promise<RemoteSession> => {
    const screen = await RemoteSession.open({ ...address, sessionId, client: { id: name, name, kind: 'test' } })
    onTestFinished(() => screen.close())
    await screen.ready
    return screen
  }
  const ask: Hosted['ask'] = async (method, path, body) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const answer = await fetch(`${server.url}/api/sessions/${sessionId}${path}`, { method, headers, ...sent })
    const text = await answer.text()
    return { status: answer.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) }
  }
  const idle = async (): Promise<void> => {
    const live = await sessions.get(sessionId)
    await vi.waitFor(() => expect(live.driver.isBusy).toBe(false), patiently)
  }
  const rest = new RestClient(address)
  return { folder, store, sessions, sessionId, clock, rest, join: join_, ask, idle }
}

/** What a screen is told of the queue. */
export function noticesOf(screen: RemoteSession): QueueNotice[] {
  const told: QueueNotice[] = []
  screen.subscribe((change) => void (change.type === 'notice' && told.push(change.notice)))
  return told
}

/** What a screen shows, a line for each thing. */
export function shownOn({ transcript }: RemoteSession): string[] {
  return [...transcript.path.items].flatMap((item) => {
    if (item.type === 'user')
      return item.content.flatMap((block) => (block.type === 'text' ? [`user: ${block.text.content}`] : []))
    if (item.type !== 'assistant') return []
    return item.parts.map((part) => {
      if (part.type === 'text') return `agent: ${part.text}`
      if (part.type === 'reasoning') return `thought: ${part.text}`
      return part.type === 'tool_call' ? `call: ${part.name} ${part.status}` : part.type
    })
  })
}

/** A point of a script at which the model waits. */
export function door(): { pass: () => Promise<void>; reached: Promise<void>; open: () => void } {
  const [reached, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  onTestFinished(() => opened.resolve())
  const pass = (): Promise<void> => {
    reached.resolve()
    return opened.promise
  }
  return { pass, reached: reached.promise, open: () => opened.resolve() }
}
