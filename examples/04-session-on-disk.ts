// An agent whose every step is on disk. It reports lines, which are durable, and text while it is streamed.
import { AgentSession, agentEvents, toolEvents } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folder = await mkdtemp(join(tmpdir(), 'tapetree-example-'))
const model = scriptedModel(
  script()
    .text('I will look. ')
    .toolCall('call-1', 'ls')
    .step()
    .text('There is a folder ', 'with sessions.')
    .step()
    .text('You are welcome.'),
)

const store = openFileStore({ folder: join(folder, 'sessions') })
const agent = await AgentSession.open({ store, model, cwd: folder, systemPrompt: 'Be brief.' })

const shown = new Set(['message', 'run_start', 'run_end'])
agent.subscribe((event) => {
  if (event.type !== 'line' || !shown.has(event.committed.line.type)) return
  const { line } = event.committed
  console.log(`  on disk: ${line.type}${line.type === 'message' ? ` of ${line.message.role}` : ''}`)
})
agentEvents(agent, (event) => {
  if (event.type === 'text_delta') console.log(`says: ${event.text}`)
})
toolEvents(agent, ({ type, callId }) => console.log(`${type} ${callId}`))

await agent.prompt('What is here?')
// During a run, `followUp` queues a message until its end; `steer` interrupts.
const second = await agent.followUp('Thank you.')
await agent.untilIdle()
console.log(second.type, agent.state().name, agent.state().waiting.length)

await agent.close()
await store.close()
await rm(folder, { recursive: true })
