// A server that runs a command of a user, until its parent kills it.
import { allowAll, onlyModel } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { agentSessions } from '../../drivers/agent-sessions.ts'

const [folder = '', commandId = '', command = ''] = process.argv.slice(2)
const store = openFileStore({ folder })
const models = onlyModel(scriptedModel(script()))
const sessions = agentSessions({ store, models, tools: () => [], gate: () => allowAll, hasSubagents: false })
const id = await sessions.create({ cwd: folder })
const live = await sessions.get(id)
process.send?.(id)
await live.perform(commandId, 'me', { op: 'bash', args: { command } })
