// An agent with two subagents in a process of its own, made to be killed: it takes one task from its parent, begins a run or resumes the
// one it finds, and says what it has promised as soon as it has.
import { AgentSession, onlyModel, allowAll } from '@tapetree/agent'
import { systemClock } from '@tapetree/agent/run'
import type { ModelRequest } from '@tapetree/agent/models'
import { bashTool } from '@tapetree/agent/tools'
import { script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import type { Message } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import type { Task, Word } from '../resume/words.ts'
import { parentAnswer, tasksOf } from './tasks.ts'

process.once('message', (task: Task) => {
  void play(task).catch((error: unknown) => {
    console.error(error)
    process.exit(1)
  })
})
say({ type: 'ready' })

async function play({ folder, sessionId, marks }: Task): Promise<void> {
  const store = openFileStore({ folder })
  const model = scriptedModel([], { clock: systemClock, otherwise: (request) => answerTo(request, marks) })
  const agent = await AgentSession.open({
    store,
    sessionId,
    models: onlyModel(model),
    tools: ({ jobs, redaction }) => [bashTool({ jobs, redaction })],
    gate: () => allowAll,
    cwd: marks,
  })
  agent.subscribe((event) => {
    if (event.type === 'line') say({ type: 'line', seq: event.committed.seq, crc: event.committed.crc })
  })
  const { messages } = await agent.session.getContext()
  const run = messages.length === 0 ? await begin(agent) : await agent.resume({ byPerson: true })
  say(run ? { type: 'done', outcome: (await run.done).outcome } : { type: 'nothing-to-resume' })
  await agent.close()
  await store.close()
  process.disconnect()
}

async function begin(agent: AgentSession): ReturnType<AgentSession['resume']> {
  const outcome = await agent.prompt('go')
  return outcome.type === 'started' ? outcome.run : undefined
}

/** The model answers by what it is shown alone, so that a resumed run goes the same way. Parent and subagents share it. */
function answerTo({ messages }: ModelRequest, marks: string): ScriptBuilder {
  const tasks = tasksOf(marks)
  const isAnswered = messages.at(-1)?.role === 'tool'
  const own = tasks.find(({ prompt }) => prompt === textOf(messages[0]))
  if (isAnswered) return stream(own?.answer ?? parentAnswer)
  const spoken = stream('Let me see what is to be done here. ')
  if (own) return spoken.toolCall('call-1', 'bash', { command: own.command })
  for (const { callId, prompt } of tasks) spoken.toolCall(callId, 'task', { description: prompt, prompt })
  return spoken
}

function stream(words: string): ScriptBuilder {
  const spoken = script()
  for (const word of words.split(/(?<= )/)) spoken.text(word).wait(15)
  return spoken
}

function textOf(message: Message | undefined): string {
  return (message?.content ?? []).map((block) => (block.type === 'text' ? block.text.content : '')).join('')
}

function say(word: Word): void {
  process.send?.(word)
}
