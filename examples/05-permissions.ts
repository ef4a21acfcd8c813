// What the agent may do, what it must ask for, and what it may never do.
import { AgentSession } from '@tapetree/agent'
import type { Rule } from '@tapetree/agent/permissions'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const cwd = await mkdtemp(join(tmpdir(), 'tapetree-example-'))
const model = scriptedModel(
  script()
    .toolCall('1', 'bash', { command: 'ls' })
    .toolCall('2', 'write', { path: 'notes.md', content: 'Salt.\n' })
    .toolCall('3', 'write', { path: 'secret.md', content: 'Gold.\n' })
    .toolCall('4', 'bash', { command: 'rm -rf .' })
    .step()
    .text('Done, as far as I may.'),
)

const denied: Rule = { effect: 'deny', type: 'command', match: 'rm *' }
const agent = await AgentSession.open({
  model,
  cwd,
  mode: 'ask',
  policy: { rules: { user: [denied] } },
})

// A request is a line of the log, and so is its answer: any client may answer, also after a restart.
for await (const event of agent.stream('Tidy up.')) {
  if (event.type !== 'permission_request') continue
  const { requestId, title } = event.request
  const isFine = title.includes('notes.md')
  console.log(`asked: ${title.split('\n')[0]?.replace(cwd, '.')} ${isFine ? 'yes' : 'no'}`)
  await agent.answer(
    isFine
      ? { requestId, outcome: 'allowed', optionId: 'allow_once' }
      : { requestId, outcome: 'rejected', text: 'Not that one.' },
  )
}

for (const { message } of (await agent.session.getContext()).messages) {
  for (const block of message.content) {
    if (block.type === 'tool_result') console.log(block.toolResult.toolUseId, block.toolResult.isError ? 'no' : 'ok')
  }
}
console.log(await readdir(cwd))
await agent.close()
await rm(cwd, { recursive: true })
