// The process is killed during a command. The next process finds the interrupted run and resumes it; the command kept running.
import { AgentSession, allowAll } from '@tapetree/agent'
import { script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const [, , role, given] = process.argv
const folder = given ?? (await mkdtemp(join(tmpdir(), 'tapetree-example-')))
const store = openFileStore({ folder: join(folder, 'sessions') })

function open(words: ScriptBuilder, sessionId: string): Promise<AgentSession> {
  const model = scriptedModel(words)
  return AgentSession.open({ store, sessionId, create: true, model, cwd: folder, gate: allowAll, hasSubagents: false })
}

if (role === 'to-be-killed') {
  const agent = await open(script().toolCall('call-1', 'bash', { command: 'sleep 1; echo done; exit 3' }), 'long-work')
  agent.subscribe((event) => {
    if (event.type === 'line' && event.committed.line.type === 'tool_start') process.kill(process.pid, 'SIGKILL')
  })
  await agent.prompt('Do the long work.')
  await new Promise(() => undefined)
}

const { signal } = spawnSync(process.execPath, [...process.execArgv, import.meta.filename, 'to-be-killed', folder])
console.log(`the first process: ${signal}`)

const agent = await open(script().text('It ended with exit code 3.'), 'long-work')
const plan = await agent.planResume()
for (const matter of plan?.matters ?? []) console.log('open:', matter.type, 'action' in matter ? matter.action : '')

const run = await agent.resume()
console.log((await run?.done)?.outcome)
for (const { message } of (await agent.session.getContext()).messages) {
  for (const block of message.content) {
    if (block.type === 'text') console.log(`${message.role}: ${block.text.content}`)
    if (block.type === 'tool_result') console.log(`tool: ${JSON.stringify(block.toolResult.content)}`)
  }
}
await agent.close()
await store.close()
await rm(folder, { recursive: true })
