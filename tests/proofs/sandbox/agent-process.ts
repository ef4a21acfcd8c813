// An agent that runs one command in the sandbox, or resumes the run of one that was killed. It prints a line of JSON when the command has
// started, and one with the result.
import { basename, join } from 'node:path'
import { AgentSession } from '@tapetree/agent'
import { Sandbox } from '@tapetree/agent/sandbox'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { hosts } from './network.ts'

const [action, folder = '', command = ''] = process.argv.slice(2)
const work = join(folder, 'work')
const says = script()
if (action === 'start') says.toolCall('call', 'bash', { command }).step()
await using agent = await AgentSession.open({
  model: scriptedModel(says.text('done')),
  store: openFileStore({ folder: join(folder, 'sessions') }),
  sessionId: 'killed',
  create: true,
  cwd: work,
  mode: 'sandboxed',
  hasSubagents: false,
  policy: { rules: { user: [{ effect: 'allow', type: 'fetch', match: hosts.allowed }] } },
  whenUnanswered: 'deny',
  sandbox: () =>
    Sandbox.open({
      folders: [work],
      home: join(folder, 'home'),
      own: [join(folder, 'data')],
      keep: join(folder, 'keep'),
      hosts: { [hosts.allowed]: '127.0.0.1', [hosts.other]: '127.0.0.1' },
      // Long enough for a supervisor that starts on a busy machine after the agent was killed.
      idleMs: 1000,
    }),
})
agent.subscribe((event) => {
  if (event.type !== 'line' || event.committed.line.type !== 'tool_start') return
  const { spool, sandbox } = event.committed.line.toolStart
  const place = join(agent.session.localFolder ?? '', 'spool', basename(spool ?? ''))
  console.log(JSON.stringify({ spool: place, isBoxed: sandbox !== undefined }))
})
if (action === 'start') await agent.ask('go')
else await (await agent.resume({ byPerson: true }))?.done
const { messages } = await agent.session.getContext()
const results = messages.flatMap(({ message }) => (message.role === 'tool' ? [message.content] : []))
console.log(JSON.stringify({ result: JSON.stringify(results) }))
