// A process that hosts a session with a foreign agent and is killed while a call of the agent runs. Sends the id of the session then.
import { openFileStore } from '@tapetree/session/stores/file'
import { join } from 'node:path'
import { call, say, steps, wait } from './agent-steps.ts'
import { foreignSessions } from './foreign-sessions.ts'

const [folder = ''] = process.argv.slice(2)
const sessions = foreignSessions({ store: openFileStore({ folder: join(folder, 'sessions') }), folder })
const live = await sessions.get(await sessions.create({}))
live.session.subscribe(({ line }) => {
  if (line.type === 'tool_start') process.send?.(live.session.id)
})
const text = steps(say('I begin, and '), call('1', { status: 'in_progress' }), wait)
await live.perform('c', 'me', { op: 'prompt', args: { text } })
