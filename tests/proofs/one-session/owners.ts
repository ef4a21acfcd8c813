import { join } from 'node:path'
import type { AgentSession } from '@tapetree/agent'
import { ProblemError as ClientProblem, RemoteSession, type SessionHandle } from '@tapetree/client'
import type { Operation } from '@tapetree/client/protocol'
import { newId, type Session } from '@tapetree/session'
import { defaultTenant, TokenStore } from '../../../packages/server/src/auth/token-store.ts'
import type { LiveSession } from '../../../packages/server/src/live/live-session.ts'
import type { LiveSessions } from '../../../packages/server/src/live/live-sessions.ts'
import { LocalSession } from '../../../packages/server/src/local/local-session.ts'
import { RequestProblem as ServerProblem } from '../../../packages/server/src/util/problem-error.ts'
import { startServer } from '../../../packages/server/src/server.ts'
import type { World } from './world.ts'

export type WhenBusy = 'queue' | 'steer' | 'reject'
/** A terminal has the session in its own process; a client is attached to a server by a socket. */
export type OwnerKind = 'agent' | 'terminal' | 'server' | 'client'

export interface Told {
  type: string
  runId: string | null
}

/** Somebody who has the session open, in one of the ways in which that can be done. */
export interface SessionOwner {
  readonly kind: OwnerKind
  readonly session: Session
  readonly isBusy: boolean
  prompt(text: string, whenBusy: WhenBusy): Promise<Told>
  /** Resolves with the run, if there is one. */
  resume(): Promise<string | null>
  abort(): Promise<unknown>
  compact(): Promise<unknown>
  navigate(entryId: string): Promise<unknown>
  setLevel(level: 'low' | 'high'): Promise<unknown>
  answer(requestId: string): Promise<unknown>
  release(): Promise<unknown>
  close(): Promise<unknown>
  /** As at the end of a process that is started again. */
  suspend(): Promise<unknown>
}

export async function openOwner(kind: OwnerKind, world: World): Promise<SessionOwner> {
  if (kind === 'agent') return new AgentOwner(await world.openAgent())
  const sessions = world.liveSessions()
  try {
    const live = await sessions.get(world.sessionId)
    switch (kind) {
      case 'terminal': {
        const handle = await LocalSession.open({ sessions, sessionId: world.sessionId })
        return new LiveOwner({ kind, sessions, live, handle, detach: () => handle.close() })
      }
      case 'server':
        return new LiveOwner({ kind, sessions, live, detach: () => Promise.resolve() })
      case 'client':
        return new LiveOwner({ kind, sessions, live, ...(await attachedClient(sessions, world)) })
      default:
        kind satisfies never
        throw new TypeError(`There is no owner of kind ${String(kind)}.`)
    }
  } catch (error) {
    await sessions.close()
    throw error
  }
}

/** Through every door of a real server. */
async function attachedClient(
  sessions: LiveSessions,
  { folder, sessionId }: World,
): Promise<{ handle: SessionHandle; detach: () => Promise<void> }> {
  const tokens = await TokenStore.open({ file: join(folder, `tokens-${newId()}.json`) })
  const server = await startServer({ tenants: new Map([[defaultTenant, sessions]]), tokens })
  const token = tokens.takeFirstToken() ?? ''
  const handle = await RemoteSession.open({ baseUrl: server.url, token, sessionId })
  const detach = async (): Promise<void> => {
    await handle.close()
    await server.close()
  }
  return { handle, detach }
}

class AgentOwner implements SessionOwner {
  readonly kind = 'agent'
  readonly #agent: AgentSession

  constructor(agent: AgentSession) {
    this.#agent = agent
  }

  get session(): Session {
    return this.#agent.session
  }

  get isBusy(): boolean {
    return this.#agent.state().isBusy
  }

  async prompt(text: string, whenBusy: WhenBusy): Promise<Told> {
    const { type, runId } = await this.#agent.prompt(text, { whenBusy })
    return { type, runId }
  }

  async resume(): Promise<string | null> {
    await this.#agent.planResume()
    return (await this.#agent.resume({ byPerson: true }))?.id ?? null
  }

  abort(): Promise<unknown> {
    return this.#agent.abort()
  }

  compact(): Promise<unknown> {
    return this.#agent.compact()
  }

  navigate(entryId: string): Promise<unknown> {
    return this.#agent.navigate(entryId, { summarize: true })
  }

  setLevel(level: 'low' | 'high'): Promise<unknown> {
    return this.#agent.setThinkingLevel(level)
  }

  answer(requestId: string): Promise<unknown> {
    return this.#agent.answer({ requestId, outcome: 'allowed' })
  }

  async release(): Promise<unknown> {
    await this.session.changeInbox({ action: 'release' })
    return this.#agent.wake()
  }

  close(): Promise<unknown> {
    return this.#agent.close()
  }

  suspend(): Promise<unknown> {
    return this.#agent.suspend()
  }
}

/** A refusal by the type that clients see. */
class Refused extends Error {
  readonly code: string

  constructor(code: string) {
    super(code)
    this.code = code
  }
}

interface LiveOwnerParts {
  kind: Exclude<OwnerKind, 'agent'>
  sessions: LiveSessions
  live: LiveSession
  /** Absent: commands are handed to the live session, as a door does. */
  handle?: SessionHandle
  detach: () => Promise<void>
}

/** A server or a terminal: commands go the way that those of a client go. */
class LiveOwner implements SessionOwner {
  readonly kind: OwnerKind
  readonly #parts: LiveOwnerParts

  constructor(parts: LiveOwnerParts) {
    this.kind = parts.kind
    this.#parts = parts
  }

  get session(): Session {
    return this.#parts.live.session
  }

  get isBusy(): boolean {
    return this.#parts.live.driver.isBusy
  }

  async prompt(text: string, whenBusy: WhenBusy): Promise<Told> {
    const { outcome, run_id: runId } = (await this.#perform('prompt', { text, when_busy: whenBusy })) as {
      outcome: string
      run_id: string | null
    }
    return { type: outcome, runId }
  }

  async resume(): Promise<string | null> {
    return ((await this.#perform('resume', { by_person: true })) as { run_id: string | null }).run_id
  }

  abort(): Promise<unknown> {
    return this.#perform('cancel', {})
  }

  compact(): Promise<unknown> {
    return this.#perform('compact', {})
  }

  navigate(entryId: string): Promise<unknown> {
    return this.#perform('branch', { entry_id: entryId, summarise: true })
  }

  setLevel(level: 'low' | 'high'): Promise<unknown> {
    return this.#perform('set_thinking_level', { level })
  }

  answer(requestId: string): Promise<unknown> {
    return this.#perform('permission.answer', { request_id: requestId, outcome: 'allowed' })
  }

  release(): Promise<unknown> {
    return this.#perform('queue.release', {})
  }

  async close(): Promise<unknown> {
    const { sessions, live, detach } = this.#parts
    await sessions.release(live.session.id)
    await detach()
    return sessions.close()
  }

  async suspend(): Promise<unknown> {
    await this.#parts.detach()
    return this.#parts.sessions.close()
  }

  async #perform(op: Operation, args: object): Promise<unknown> {
    const { live, handle } = this.#parts
    if (handle) return handle.run(op, args)
    const { ok, result, error } = await live.perform(newId(), 'server', { op, args })
    if (!ok) throw new Refused(error?.type ?? 'unknown')
    return result
  }
}

/** By what a program decides. */
export function codeOf(error: unknown): string {
  if (error instanceof ClientProblem) return error.type
  if (error instanceof ServerProblem) return error.problem.type
  if (!(error instanceof Error)) return 'unknown'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
