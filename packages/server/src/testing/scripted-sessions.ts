import { AgentSession, onlyModel, allowAll } from '@tapetree/agent'
import { systemClock, type Clock } from '@tapetree/agent/run'
import { script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { memoryStore } from '@tapetree/session'
import { AgentDriver } from '../drivers/agent-driver.ts'
import { LiveSessions } from '../live/live-sessions.ts'

/** Sessions in memory with a scripted model, each from the start of the script. */
export function scriptedSessions(options: { says?: () => ScriptBuilder; clock?: Clock } = {}): LiveSessions {
  const { says = () => script().text('Hello.'), clock } = options
  const store = memoryStore()
  return new LiveSessions({
    store,
    openDriver: async (sessionId) => {
      const model = scriptedModel(says(), { clock: systemClock })
      const agent = await AgentSession.open({
        store,
        sessionId,
        models: onlyModel(model),
        tools: () => [model.tool('act')],
        gate: () => allowAll,
        hasSubagents: false,
        cwd: '/',
      })
      return new AgentDriver({ agent })
    },
    create: async ({ model: _model, agent: _agent, ...header }) => {
      const session = await store.create({ cwd: '/', ...header })
      await session.close()
      return session.id
    },
    ...(clock && { clock }),
  })
}
