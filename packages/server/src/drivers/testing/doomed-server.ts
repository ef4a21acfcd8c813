// A process that hosts a session and is killed while a tool runs. Prints the session id once the tool runs and
// a message is queued.
import { AgentSession, onlyModel, allowAll } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { LiveSessions } from '../../live/live-sessions.ts'
import { AgentDriver } from '../agent-driver.ts'

const [folder = ''] = process.argv.slice(2)
const store = openFileStore({ folder })
const model = scriptedModel(script().text('Let me see.').toolCall('1', 'act'))
const sessions = new LiveSessions({
  store,
  create: async (options) => {
    await using session = await store.create(options)
    return session.id
  },
  openDriver: async (sessionId) => {
    const forever = {
      ...model.tool('act'),
      check: () => ({ access: [], run: () => new Promise<never>(() => undefined) }),
    }
    const options = {
      models: onlyModel(model),
      tools: () => [forever],
      gate: () => allowAll,
      hasSubagents: false,
      owner: 'server',
    }
    return new AgentDriver({ agent: await AgentSession.open({ store, sessionId, cwd: folder, ...options }) })
  },
})
const id = await sessions.create({ cwd: folder })
const live = await sessions.get(id)
const begun = Promise.withResolvers<void>()
live.session.subscribe(({ line }) => {
  if (line.type === 'tool_start') begun.resolve()
})
await live.perform('m', 'me', { op: 'set_config', args: { mode: 'accept-edits' } })
await live.perform('c', 'me', { op: 'prompt', args: { text: 'work' } })
await live.perform('d', 'me', { op: 'queue.add', args: { message: 'and then this' } })
await begun.promise
process.send?.(id)
