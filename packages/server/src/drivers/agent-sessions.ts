import { AgentSession, type AgentSessionOptions } from '@tapetree/agent'
import type { SessionStore } from '@tapetree/session'
import { AgentDriver } from './agent-driver.ts'
import { LiveSessions, type LiveSessionsOptions } from '../live/live-sessions.ts'
import { serverOwner } from '../live/driver.ts'

export interface AgentSessionsOptions
  extends
    Omit<AgentSessionOptions, 'store' | 'sessionId' | 'create' | 'cwd'>,
    Pick<LiveSessionsOptions, 'maxLive' | 'idleMs' | 'observers' | 'onProblem'> {
  store: SessionStore
}

/** Sessions run by our own agent, all with the same options, each in its own folder. */
export function agentSessions({
  maxLive,
  idleMs,
  observers,
  onProblem,
  mode,
  ...options
}: AgentSessionsOptions): LiveSessions {
  const { store } = options
  // For sessions without a recorded mode: reopening a session keeps the client's choice.
  const defaultMode = mode ?? options.defaultMode
  return new LiveSessions({
    store,
    openDriver: async (sessionId) => {
      // Open until the agent has it, which then shares it instead of reading the log once more.
      await using session = await store.open(sessionId)
      const cwd = session.header?.cwd
      return new AgentDriver({
        agent: await AgentSession.open({
          owner: serverOwner,
          ...options,
          ...(defaultMode && { defaultMode }),
          sessionId,
          ...(cwd !== undefined && { cwd }),
        }),
      })
    },
    create: async ({ model, agent: _agent, ...header }) => {
      await using session = await store.create(header)
      if (model) await session.appendModelChange(model.provider, model.modelId)
      return session.id
    },
    ...(maxLive !== undefined && { maxLive }),
    ...(idleMs !== undefined && { idleMs }),
    ...(observers && { observers }),
    ...(onProblem && { onProblem }),
  })
}
