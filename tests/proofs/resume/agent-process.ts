// An agent in a process of its own, made to be killed: it takes one task from its parent, begins a run or resumes the one it
// finds, and says what it has promised as soon as it has.
import { planResume, systemClock } from '@tapetree/agent/run'
import { bashTool, Jobs } from '@tapetree/agent/tools'
import type { LiveEvent } from '@tapetree/agent'
import type { RunStart } from '@tapetree/agent/run'
import type { ModelRequest } from '@tapetree/agent/models'
import { script, scriptedModel, TestAgent, type ScriptBuilder } from '@tapetree/agent/testing'
import { text, type Message } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { commandsOf, waitingMessages, type Task, type Word } from './words.ts'

process.once('message', (task: Task) => {
  void play(task).catch((error: unknown) => {
    console.error(error)
    process.exit(1)
  })
})
say({ type: 'ready' })

async function play(task: Task): Promise<void> {
  const store = openFileStore({ folder: task.folder })
  const tools = [bashTool({ jobs: new Jobs() })]
  const model = scriptedModel([], { clock: systemClock, otherwise: (request) => answerTo(request, task) })
  const agent = await TestAgent.open({
    model,
    tools,
    store,
    sessionId: task.sessionId,
    clock: systemClock,
    cwd: task.marks,
    settings: { steerPolicy: 'after-batch' },
    observe: (event) => tell(event, task),
  })
  let answers = 0
  agent.session.subscribe(({ seq, crc, line }) => {
    say({ type: 'line', seq, crc })
    const isAnswer = line.type === 'message' && line.message.role === 'assistant'
    if (isAnswer && ++answers === task.diesAfterAnswer) process.kill(process.pid, 'SIGKILL')
  })
  // What is sent with the prompt may be in the log before it: then nobody was promised anything yet.
  const isNew = (await agent.session.getContext()).messages.length === 0
  const plan = isNew ? undefined : await planResume(agent.session, tools)
  // It may have died between two runs: then nothing is open, and a message still waits.
  const message = agent.session.nextWaiting('follow-up')
  if (!isNew && !plan && !message) say({ type: 'nothing-to-resume' })
  else if (plan?.needsPerson && !task.insist) say({ type: 'needs-person' })
  else {
    const next: RunStart = plan
      ? { type: 'resume', plan }
      : message
        ? { type: 'waiting' }
        : { type: 'prompt', content: [text('go')] }
    const begun = Promise.withResolvers<void>()
    agent.session.subscribe(({ line }) => void (line.type === 'message' && begun.resolve()))
    const done = agent.run(next)
    if (isNew) {
      // Nobody leaves a message for after a prompt that may not be there.
      await Promise.race([begun.promise, done])
      for (const message of waitingMessages) {
        await agent.session.submit(message)
        say({ type: 'submitted', message })
      }
    }
    say({ type: 'done', outcome: (await done).outcome })
  }
  await agent.close()
  await store.close()
  process.disconnect()
}

/** The model answers by what it is shown alone, so that a resumed run goes the same way. */
function answerTo({ messages }: ModelRequest, task: Task): ScriptBuilder {
  const last = messages.at(-1) as Message
  const answers = messages.filter(({ role }) => role === 'assistant').length
  const isWorking = last.role === 'tool' || textOf(last) === 'go'
  const commands = isWorking ? commandsOf(task.marks)[answers] : undefined
  const spoken = stream(commands ? 'Let me see what is to be done here.' : 'All is done.', task)
  for (const { id, command } of commands ?? []) spoken.toolCall(id, 'bash', { command })
  return spoken
}

function stream(words: string, { crashes = false }: Task): ScriptBuilder {
  const spoken = script()
  for (const word of words.repeat(4).split(/(?<= )/)) {
    spoken.text(word).wait(8)
    if (crashes) spoken.do(() => process.kill(process.pid, 'SIGKILL'))
  }
  return spoken
}

function tell(event: LiveEvent, _: Task): void {
  if (event.type !== 'delta' || event.kind === 'tool_output') return
  const { item, part, off, text } = event
  say({ type: 'delta', item, part, off, text, atMs: Date.now() })
}

function textOf({ content }: Message): string {
  return content.map((block) => (block.type === 'text' ? block.text.content : '')).join('')
}

function say(word: Word): void {
  process.send?.(word)
}
