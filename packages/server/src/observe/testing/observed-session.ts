import { AgentSession, onlyModel, allowAll, type AgentSessionOptions } from '@tapetree/agent'
import { script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { memoryStore } from '@tapetree/session'
import { AgentDriver } from '../../drivers/agent-driver.ts'
import type { LiveSession } from '../../live/live-session.ts'
import { LiveSessions, type LiveSessionsOptions } from '../../live/live-sessions.ts'

export interface Observed {
  says?: ScriptBuilder
  observers?: LiveSessionsOptions['observers']
  maxLive?: number
  agent?: Partial<AgentSessionOptions>
}

/** Sessions with a scripted model and observers. */
export function observedSessions({ says = script(), observers = [], maxLive = 10, agent }: Observed): LiveSessions {
  const store = memoryStore()
  const model = scriptedModel(says)
  return new LiveSessions({
    store,
    observers,
    maxLive,
    create: async () => {
      await using session = await store.create()
      return session.id
    },
    openDriver: async (sessionId) =>
      new AgentDriver({
        agent: await AgentSession.open({
          store,
          sessionId,
          models: onlyModel(model),
          tools: () => [model.tool('act')],
          gate: () => allowAll,
          hasSubagents: false,
          cwd: '/',
          ...agent,
        }),
      }),
  })
}

/** Resolves when the run has ended. */
export async function promptOf(live: LiveSession, text: string): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    const stop = live.session.subscribe(({ line }) => {
      if (line.type !== 'run_end') return
      stop()
      resolve()
    })
  })
  await live.perform(`prompt ${text}`, 'me', { op: 'prompt', args: { text } })
  await ended
}
