// An agent whose every step is on the disk. Two things can be heard of it: lines, which are facts, and what is in the air.
import { AgentSession, agentEvents, onlyModel, toolEvents } from '@tapetree/agent'
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
const agent = await AgentSession.open({ store, models: onlyModel(model), cwd: folder, systemPrompt: () => 'Be brief.' })

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

const outcome = await agent.prompt('What is here?')
// A message that comes while a run goes on waits for its turn; `steer` would be heard at once.
const second = await agent.followUp('Thank you.')
if (outcome.type === 'started') console.log((await outcome.run.done).outcome)
console.log(second.type, agent.state().name, agent.state().waiting.length)

await agent.close()
await store.close()
await rm(folder, { recursive: true })
