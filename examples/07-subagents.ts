// Two subagents at once, each with its own session. They ask for permission in the session of their parent.
import { AgentSession } from '@tapetree/agent'
import type { ModelRequest } from '@tapetree/agent/models'
import { script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { memoryStore } from '@tapetree/session'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Parent and children have one model; it answers by what it was told last. */
function answer(request: ModelRequest): ScriptBuilder {
  const last = JSON.stringify(request.messages.at(-1)?.content)
  if (last.includes('Look into both'))
    return script()
      .toolCall('a', 'task', { description: 'Count the files', prompt: 'How many files are there?', tools: ['ls'] })
      .toolCall('b', 'task', { description: 'Write a note', prompt: 'Write down what you found.' })
  if (last.includes('How many files')) return script().toolCall('1', 'ls')
  if (last.includes('Write down'))
    return script().toolCall('1', 'write', { path: 'note.md', content: 'Nothing found.\n' })
  if (request.tools.some(({ name }) => name === 'task')) return script().text('Both are done.')
  return script().text(request.tools.length === 1 ? 'None.' : 'Written.')
}

const cwd = await mkdtemp(join(tmpdir(), 'tapetree-example-'))
const store = memoryStore()
const agent = await AgentSession.open({ store, model: scriptedModel([], { otherwise: answer }), cwd })
for await (const event of agent.stream('Look into both.')) {
  if (event.type !== 'permission_request') continue
  const { requestId, title } = event.request
  console.log(`asked in the parent: ${title.split('\n')[0]?.replace(cwd, '.')}`)
  await agent.answer({ requestId, outcome: 'allowed', optionId: 'allow_once' })
}

for (const { message } of (await agent.session.getContext()).messages) {
  for (const block of message.content) {
    if (block.type === 'tool_result')
      console.log(`${block.toolResult.toolUseId}: ${JSON.stringify(block.toolResult.content)}`)
    if (block.type === 'text') console.log(`${message.role}: ${block.text.content}`)
  }
}
const { sessions } = await store.list()
const children = sessions.filter(({ parentSession }) => parentSession === agent.session.id)
console.log(children.map(({ name }) => name).sort())
await agent.close()
await rm(cwd, { recursive: true })
